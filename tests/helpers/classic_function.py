"""A function of a user's own, in the classic form, for the tests of the adapter."""

import torch


def unlearn(model, retain_loader, forget_loader):
    """One epoch of descent on retain and ascent on forget."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model.train()
    for loader, sign in ((forget_loader, -1), (retain_loader, 1)):
        for x, y in loader:
            optimiser.zero_grad()
            (sign * torch.nn.functional.cross_entropy(model(x), y)).backward()
            optimiser.step()
    return model
