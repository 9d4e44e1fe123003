"""The letters of a campaign file: read from it and from the files beside it, or refused with the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sendonce.errors import BadInput
from sendonce.sandbox.notion.files import striped_png
from sendonce.settings import Settings, load_settings
from sendonce.wiring.campaigns import campaign_in_file

PNG = striped_png(48, 24)
HEAD = 'name = "Autumn"\ntenant = "acme"\ndirection = "pumps"\n'


@pytest.fixture
def settings() -> Settings:
    return load_settings({"APP_BASE_URL": "https://mail.example.com"}, dotenv=None)


def campaign(tmp_path: Path, step: str, letter: str = "") -> Path:
    (tmp_path / "first.md").write_text(letter)
    file = tmp_path / "campaign.toml"
    file.write_text(f"{HEAD}[[step]]\n{step}\n")
    return file


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ('subject = "Hi"\ntext = "Dear {{ name"', "'{{ name' is not a variable"),
        ('subject = "Hi {{"\ntext = "Dear"', "is not a variable"),
        (r'subject = "Hi\nBcc: x@y.example"' + '\ntext = "Dear"', "no header may hold"),
        ('subject = "Hi {name}"\ntext = "Dear"', "{name} would be sent as it stands"),
        (f'subject = "{"x" * 1000}"\ntext = "Dear"', "The subject has 1000 characters"),
    ],
)
def test_words_that_cannot_be_sent_are_refused(
    tmp_path: Path, settings: Settings, step: str, says: str
) -> None:
    with pytest.raises(BadInput, match="Line 4: ") as refused:
        campaign_in_file(settings, campaign(tmp_path, step))
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("letter", "says"),
    [
        ("no front matter", "first.md: Line 1: the file has no front matter"),
        ("---\nsubject: Hi\n---\nDear {{ name", "is not a variable"),
        ("---\nsubject: Hi\n---\n", "first.md cannot be sent as it is: The letter has neither a word"),
        ("---\nsubject: Hi\nsend_at: 2030-01-01 10:00\n---\nDear", "send_at is for mailouts"),
    ],
)
def test_a_template_is_refused_by_its_name(
    tmp_path: Path, settings: Settings, letter: str, says: str
) -> None:
    with pytest.raises(BadInput, match=r"campaign.toml: Line 4: .*") as refused:
        campaign_in_file(settings, campaign(tmp_path, 'template = "first.md"', letter))
    assert says in str(refused.value)


def test_pictures_of_a_template_are_kept(tmp_path: Path, settings: Settings) -> None:
    (tmp_path / "pump.png").write_bytes(PNG)
    letter = "---\nsubject: Hi\n---\n![A pump](pump.png)\n"
    _, new = campaign_in_file(settings, campaign(tmp_path, 'template = "first.md"', letter))
    ((image,),) = [step.images for step in new.steps]
    assert image.content == PNG
    assert f"https://mail.example.com/assets/{image.sha256}" in new.steps[0].letter.html
