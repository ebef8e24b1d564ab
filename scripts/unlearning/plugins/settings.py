"""The base of everything a study may configure."""

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """An immutable group of options that knows all its keys.

    A study's values are checked strictly (`study.messages`). Scripts get the checked values back as JSON, where
    a tuple is a list and every key is text, so that this class itself converts them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, allow_inf_nan=True)
