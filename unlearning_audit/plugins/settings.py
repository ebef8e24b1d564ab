"""The base of everything a study may configure."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

#: A learning rate, and passes over data: far beyond all use, and below what a slip of the finger asks for.
Rate = Annotated[float, Field(ge=0, le=1000)]
Passes = Annotated[int, Field(ge=0, le=100_000)]


def _distinct(values: tuple[object, ...]) -> tuple[object, ...]:
    if len(set(values)) < len(values):
        raise ValueError("name each value once")
    return values


#: Of a list of which each value makes rows of its own.
Distinct = AfterValidator(_distinct)

#: Rates of false alarms at which something is read.
FalsePositiveRates = Annotated[tuple[Annotated[float, Field(gt=0, lt=1)], ...], Distinct]


class Settings(BaseModel):
    """An immutable group of options that knows all its keys.

    A study's values are checked strictly (`study.messages`). Scripts get the checked values back as JSON, where
    a tuple is a list and every key is text, so that this class itself converts them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, allow_inf_nan=True)
