"""A sham moves as far as the method that it is like, and nowhere in particular."""

import torch
from unlearning_audit.methods import sham

from stack_cases import rows, trained, unlearned


def norms(state, before):
    return torch.stack([(state.parameters[k] - v).flatten(1).norm(dim=1) for k, v in before.parameters.items()])


def test_every_tensor_of_every_model_moves_as_far_as_by_the_method():
    before = trained()
    by_method, stack = unlearned(before, "neggrad"), before.copy()
    stack.alike = by_method
    sham.unlearn(stack, *rows(stack.seeds), sham.Options(like="neggrad"))
    torch.testing.assert_close(norms(stack, before), norms(by_method, before), rtol=1e-4, atol=1e-7)
    both = [torch.cat([(of.parameters[k] - v).flatten(1) for k, v in before.parameters.items()], 1)
            for of in (stack, by_method)]  # fmt: skip
    # in so many dimensions a random direction is nearly orthogonal to any other
    cosine = torch.cosine_similarity(*both)
    assert (cosine.abs() < 5 / both[0].shape[1] ** 0.5).all()


def test_without_a_method_it_moves_by_a_share_of_the_weights():
    before = trained()
    stack = unlearned(before, "sham", size=0.1)
    whole = torch.stack([v.flatten(1).norm(dim=1) for v in before.parameters.values()])
    torch.testing.assert_close(norms(stack, before), 0.1 * whole, rtol=1e-4, atol=1e-7)
