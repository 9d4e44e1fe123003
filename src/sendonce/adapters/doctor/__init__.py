"""What the doctor looks at, one module a side of the installation. See ``flows/engine/doctor.py``."""
