"""Sites of companies that never were, with contacts that are known: a web to rehearse on.

registry   names, domains, tax numbers, and what is true of each company
writing    the ways in which sites write an address
traps      what looks like an address of the company and is none
pages      the pages of a site
hostile    sites that mean harm
web        answers for all of them, told apart by the Host header
"""

from sendonce.sandbox.companies.web import CompanyWeb

__all__ = ["CompanyWeb"]
