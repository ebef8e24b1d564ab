"""Small functions with the signatures, habits and imports of published unlearning code. What they compute is short."""

#: A step of an optimiser, as each of these files writes it.
STEP = """
def step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

#: Method → (files, function, fields of the study besides file and function).
PUBLISHED = {
    # The starting kit of the NeurIPS 2023 challenge: its own names, nothing else.
    "starting_kit": (
        {"unlearning.py": """
import torch
from torch import nn, optim

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEP
def unlearning(net, retain, forget, validation):
    optimiser = optim.SGD(net.parameters(), lr=0.1)
    assert len(list(validation)) and len(list(forget))
    for inputs, targets in retain:
        step(optimiser, nn.CrossEntropyLoss()(net(inputs.to(DEVICE)), targets.to(DEVICE)))
    return net.eval()
"""}, "unlearning", {}),
    # Bad teaching (Chundawat et al. 2023): two teachers, data sets in place of loaders, nothing returned.
    "bad_teaching": (
        {"unlearn.py": """
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader
STEP
def blindspot_unlearner(model, unlearning_teacher, full_trained_teacher, retain_data, forget_data, epochs=10,
                        optimizer='adam', lr=0.01, batch_size=256, num_workers=32, device='cuda', KL_temperature=1):
    both = [(x, 0) for x, *_ in retain_data] + [(x, 1) for x, *_ in forget_data]
    assert (optimizer, epochs, num_workers) == ('adam', 2, 0)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for x, bad in DataLoader(both, batch_size=batch_size, shuffle=True, num_workers=num_workers, pin_memory=False):
        x, bad = x.to(device), bad.to(device)[:, None]
        target = torch.where(bad > 0, unlearning_teacher.eval()(x), full_trained_teacher.eval()(x)).softmax(1)
        step(optimizer, F.kl_div(F.log_softmax(model(x), dim=1), target.detach()))
"""}, "blindspot_unlearner", {"options": {"epochs": 2}}),
    # Selective synaptic dampening (Foster et al. 2024): many loaders of (x, _, y), a file beside it, scores returned.
    "ssd": (
        {"forget_random_strategies.py": """
import torch
from ssd import importances

def ssd_tuning(model, unlearning_teacher, retain_train_dl, retain_valid_dl, forget_train_dl, forget_valid_dl, valid_dl,
               dampening_constant, selection_weighting, full_train_dl, device, **kwargs):
    assert kwargs == {"model_name": "ours"}
    of_forget, of_all = (importances(model.eval(), loader, device) for loader in (forget_train_dl, full_train_dl))
    assert len(full_train_dl.dataset) == len(retain_train_dl.dataset) + len(forget_train_dl.dataset)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight[of_forget[name] > selection_weighting * of_all[name]] *= dampening_constant
    return 0.5, 0.5, {"entropy": 1.0}
""", "ssd.py": """
from torch.nn import functional as F

def importances(model, loader, device):
    model.zero_grad()
    for x, _, y in loader:
        F.cross_entropy(model(x.to(device)), y.to(device)).backward()
    return {name: weight.grad ** 2 for name, weight in model.named_parameters()}
"""}, "ssd_tuning", {"batch": "x, y, y", "options": {"dampening_constant": 0.5, "selection_weighting": 0.5,
                                                     "model_name": "ours"}}),
    # SCRUB (Kurmanji et al. 2023) as reimplemented widely: model first, an optimiser is given, cards by .cuda().
    "scrub": (
        {"scrub.py": """
import torch
STEP
def scrub(model, retain_loader, val_loader, test_loader, forget_loader, optimizer, scheduler, criterion, epochs=3,
          return_history=False, device='cuda', **kwargs):
    assert scheduler is None and not kwargs
    for x, y in retain_loader:
        step(optimizer, criterion(model.cuda()(x.cuda()), y.cuda()))
    torch.cuda.synchronize()
    return model
"""}, "scrub", {"options": {"optimizer": {"name": "SGD", "lr": 0.01}, "scheduler": None}}),
    # SalUn (Fan et al. 2024): a package with relative imports, a decorator, loaders by name, a namespace, new labels.
    "salun": (
        {"unlearn/__init__.py": "", "utils.py": "def scaled(value):\n    return value\n", "unlearn/impl.py": """
import torch
import utils
STEP
def iterative_unlearn(epoch):
    def whole(data_loaders, model, criterion, args, mask=None, **kwargs):
        optimizer = torch.optim.SGD(model.parameters(), args.unlearn_lr, momentum=args.momentum)
        epoch(data_loaders, model, criterion, optimizer, args, mask)
        return utils.scaled(0.0)

    return whole
""", "unlearn/RL.py": """
from copy import deepcopy

import numpy as np
import torch

from .impl import iterative_unlearn, step

@iterative_unlearn
def RL(data_loaders, model, criterion, optimizer, args, mask=None):
    forget, retain = deepcopy(data_loaders["forget"].dataset), data_loaders["retain"].dataset
    before = forget.targets.copy()
    forget.targets = np.random.randint(0, args.num_classes, forget.targets.shape)
    assert [y for _, y in forget] == forget.targets.tolist() != before.tolist()
    both = torch.utils.data.ConcatDataset([forget, retain])
    for image, target in torch.utils.data.DataLoader(both, batch_size=args.batch_size, shuffle=True):
        step(optimizer, criterion(model(image.cuda()), target.cuda()))
"""}, "RL", {"options": {"unlearn_lr": 0.05, "momentum": 0.9}}),
    # DUCK (Cotogni et al. 2023): a class that is run, options from the command line.
    "duck": (
        {"Unlearning_methods.py": """
import torch
from opts import OPT as opt
STEP
class DUCK:
    def __init__(self, net, retain, forget, test, class_to_remove=None):
        self.net, self.retain, self.forget, self.test = net, retain, forget, test

    def run(self):
        optimizer = torch.optim.Adam(self.net.parameters(), lr=opt.lr_unlearn)
        assert len(list(self.test))
        for x, y in self.forget:
            step(optimizer, -torch.nn.functional.cross_entropy(self.net(x.to(opt.device)), y.to(opt.device)))
        return self.net
""", "opts.py": """
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--lr_unlearn", type=float, default=0.0)
OPT = parser.parse_args()
OPT.device = "cuda:0" if torch.cuda.is_available() else "cpu"
"""}, "DUCK.run", {"argv": ["--lr_unlearn", "0.01"]}),
    # Boundary shrink (Chen et al. 2023): a copy of the original is returned, some parameters are for its reports.
    "boundary_shrink": (
        {"boundary_unlearning.py": """
import copy

import torch
STEP
def boundary_shrink(ori_model, train_forget_loader, dt, dv, test_loader, device, evaluation=False, bound=0.1,
                    poison_epoch=10, forget_class=0, path='./'):
    unlearn_model = copy.deepcopy(ori_model).to(device)
    optimizer = torch.optim.SGD(unlearn_model.parameters(), lr=0.01, momentum=0.9)
    for x, y in list(train_forget_loader) * poison_epoch:
        step(optimizer, -torch.nn.functional.cross_entropy(unlearn_model(x.to(device)), y.to(device)))
    return unlearn_model
"""}, "boundary_shrink", {"give": {"dt": "train_data", "dv": "val_data"}, "options": {"poison_epoch": 2}}),
}  # fmt: skip


def write_method(folder, name: str) -> dict:
    """Write the files of a method below ``folder``; the fields of a study that run it."""
    files, function, fields = PUBLISHED[name]
    for path, text in files.items():
        file = folder / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.lstrip().replace("STEP\n", STEP + "\n"))
    (main,) = [path for path, text in files.items() if f"def {function}(" in text or f"class {function[:4]}" in text]
    return {"file": str(folder / name / main), "function": function, **fields}
