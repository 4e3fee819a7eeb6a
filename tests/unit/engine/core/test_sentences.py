from engine.core.sentences import Sentence
from engine.localapi.said import Said, said
from engine.localapi.schema import Progress


def test_sentence_reads_as_english_and_remembers_what_it_is_made_of():
    one = Sentence("Yielding to {program}, which is running.", program="blender")
    assert one == "Yielding to blender, which is running."
    assert said(one) == (
        Said(text="Yielding to {program}, which is running.", values={"program": "blender"}),
    )


def test_sentences_are_put_together():
    both = Sentence("{n} left.", n=3000).then(Sentence("Wait."))
    assert both == "3,000 left. Wait."
    assert [part.text for part in said(both)] == ["{n} left.", "Wait."]


def test_text_that_is_no_sentence_stays_english():
    assert said("It broke.") == ()
    assert said(f"{Sentence('Starting.')} Soon.") == ()


def test_progress_carries_its_phrase_over_the_api():
    sent = Progress.of(Sentence("Downloading {model}", model="SmolLM2"), 1, 2, "bytes")
    received = Progress.model_validate_json(sent.model_dump_json())
    assert received.what == "Downloading SmolLM2"
    assert received.said == (Said(text="Downloading {model}", values={"model": "SmolLM2"}),)
