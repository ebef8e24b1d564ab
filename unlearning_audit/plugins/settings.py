"""The base class of everything that a study can configure."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

#: A learning rate, and a number of epochs. The limits are far beyond all use and catch typing errors.
Rate = Annotated[float, Field(ge=0, le=1000)]
Passes = Annotated[int, Field(ge=0, le=100_000)]


def _distinct(values: tuple[object, ...]) -> tuple[object, ...]:
    """Return ``values`` unchanged. Raises ValueError if one of them occurs twice."""
    if len(set(values)) < len(values):
        raise ValueError("give each value once")
    return values


#: A constraint: a list without repeated values, because each value makes its own rows.
Distinct = AfterValidator(_distinct)

#: False-positive rates at which a quantity is computed.
FalsePositiveRates = Annotated[tuple[Annotated[float, Field(gt=0, lt=1)], ...], Distinct]


class Settings(BaseModel):
    """An immutable group of options that refuses unknown names.

    A study's values are checked strictly (`study.messages`). Scripts read the checked values from JSON, where a tuple
    is a list and every key is text, so that this class converts types.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, allow_inf_nan=True)
