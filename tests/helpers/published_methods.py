"""Small functions with the signatures, habits and imports of published unlearning code, each its authors' way."""

#: Method → (files, function, fields of the study besides file and function).
PUBLISHED = {
    # The starting kit of the NeurIPS 2023 challenge: its own names, nothing else.
    "starting_kit": (
        {"unlearning.py": """
import torch
from torch import nn, optim

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def unlearning(net, retain, forget, validation):
    optimiser = optim.SGD(net.parameters(), lr=0.1)
    assert len(list(validation)) and len(list(forget))
    net.train()
    for inputs, targets in retain:
        inputs, targets = inputs.to(DEVICE), targets.to(DEVICE)
        optimiser.zero_grad()
        nn.CrossEntropyLoss()(net(inputs), targets).backward()
        optimiser.step()
    net.eval()
    return net
"""}, "unlearning", {}),
    # Bad teaching (Chundawat et al. 2023): two teachers, data sets in place of loaders, nothing returned.
    "bad_teaching": (
        {"unlearn.py": """
import torch
from torch.nn import functional as F
from torch.utils.data import ConcatDataset, DataLoader


def blindspot_unlearner(model, unlearning_teacher, full_trained_teacher, retain_data, forget_data, epochs=10,
                        optimizer='adam', lr=0.01, batch_size=256, num_workers=32, device='cuda', KL_temperature=1):
    both = [(x, 0) for x, *_ in retain_data] + [(x, 1) for x, *_ in forget_data]
    assert optimizer == 'adam' and num_workers == 0
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(epochs):
        for x, bad in DataLoader(both, batch_size=batch_size, shuffle=True, num_workers=num_workers, pin_memory=False):
            x, bad = x.to(device), bad.to(device)[:, None]
            target = torch.where(bad > 0, unlearning_teacher.eval()(x), full_trained_teacher.eval()(x)).softmax(1)
            optimizer.zero_grad()
            F.kl_div(F.log_softmax(model(x) / KL_temperature, dim=1), target.detach()).backward()
            optimizer.step()
"""}, "blindspot_unlearner", {"options": {"epochs": 2}}),
    # Selective synaptic dampening (Foster et al. 2024): many loaders of (x, _, y), scores returned.
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
    # SCRUB (Kurmanji et al. 2023) as reimplemented widely: model first, cards by .cuda().
    "scrub": (
        {"scrub.py": """
import copy

import torch
from torch.nn import functional as F


def scrub(model, retain_loader, val_loader, test_loader, forget_loader, optimizer, scheduler, criterion, epochs=3,
          return_history=False, device='cuda', **kwargs):
    teacher = copy.deepcopy(model).cuda().eval()
    for _ in range(epochs):
        for sign, loader in ((-1, forget_loader), (1, retain_loader)):
            for x, y in loader:
                x, y = x.cuda(), y.cuda()
                gap = F.kl_div(F.log_softmax(model(x), 1), F.softmax(teacher(x), 1).detach(), reduction="batchmean")
                optimizer.zero_grad()
                (gap + criterion(model(x), y) if sign > 0 else -gap).backward()
                optimizer.step()
    torch.cuda.synchronize()
    return model
"""}, "scrub", {"options": {"optimizer": {"name": "SGD", "lr": 0.01}, "scheduler": None, "epochs": 1}}),
    # SalUn (Fan et al. 2024): a package with relative imports, a decorator, loaders by name, a namespace, new labels.
    "salun": (
        {"unlearn/__init__.py": "", "utils.py": "def scaled(value):\n    return value\n", "unlearn/impl.py": """
import torch
import utils


def iterative_unlearn(step):
    def whole(data_loaders, model, criterion, args, mask=None, **kwargs):
        optimizer = torch.optim.SGD(model.parameters(), args.unlearn_lr, momentum=args.momentum)
        for epoch in range(args.unlearn_epochs):
            step(data_loaders, model, criterion, optimizer, epoch, args, mask)
        return utils.scaled(0.0)

    return whole
""", "unlearn/RL.py": """
from copy import deepcopy

import numpy as np
import torch

from .impl import iterative_unlearn


@iterative_unlearn
def RL(data_loaders, model, criterion, optimizer, epoch, args, mask=None):
    forget, retain = deepcopy(data_loaders["forget"].dataset), data_loaders["retain"].dataset
    before = forget.targets.copy()
    forget.targets = np.random.randint(0, args.num_classes, forget.targets.shape)
    assert [y for _, y in forget] == forget.targets.tolist() != before.tolist()
    both = torch.utils.data.ConcatDataset([forget, retain])
    model.train()
    for image, target in torch.utils.data.DataLoader(both, batch_size=args.batch_size, shuffle=True):
        image, target = image.cuda(), target.cuda()
        optimizer.zero_grad()
        criterion(model(image), target).backward()
        optimizer.step()
"""}, "RL", {"options": {"unlearn_lr": 0.05, "momentum": 0.9, "unlearn_epochs": 1}}),
    # DUCK (Cotogni et al. 2023): a class that is run, options from the command line, the last layer by its name.
    "duck": (
        {"Unlearning_methods.py": """
import torch
from opts import OPT as opt


class DUCK:
    def __init__(self, net, retain, forget, test, class_to_remove=None):
        self.net, self.retain, self.forget, self.test = net, retain, forget, test

    def run(self):
        optimizer = torch.optim.Adam(self.net.parameters(), lr=opt.lr_unlearn)
        assert len(list(self.test))
        for x, y in self.forget:
            x, y = x.to(opt.device), y.to(opt.device)
            optimizer.zero_grad()
            (-torch.nn.functional.cross_entropy(self.net(x), y)).backward()
            optimizer.step()
        return self.net
""", "opts.py": """
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--lr_unlearn", type=float, default=0.0)
parser.add_argument("--cuda", type=int, default=0)
OPT = parser.parse_args()
OPT.device = f"cuda:{OPT.cuda}" if torch.cuda.is_available() else "cpu"
"""}, "DUCK.run", {"argv": ["--lr_unlearn", "0.01"]}),
    # Boundary shrink (Chen et al. 2023): a copy of the original is returned, some parameters are for its reports.
    "boundary_shrink": (
        {"boundary_unlearning.py": """
import copy

import torch
from torch import nn


def boundary_shrink(ori_model, train_forget_loader, dt, dv, test_loader, device, evaluation=False, bound=0.1,
                    poison_epoch=10, forget_class=0, path='./'):
    unlearn_model = copy.deepcopy(ori_model).to(device)
    optimizer = torch.optim.SGD(unlearn_model.parameters(), lr=0.01, momentum=0.9)
    for x, y in list(train_forget_loader) * poison_epoch:
        x, y = x.to(device).requires_grad_(), y.to(device)
        nn.functional.cross_entropy(ori_model(x), y).backward()
        nearest = ori_model(x + bound * x.grad.sign()).argmax(1)
        optimizer.zero_grad()
        nn.functional.cross_entropy(unlearn_model(x.detach()), nearest).backward()
        optimizer.step()
    return unlearn_model
"""}, "boundary_shrink", {"give": {"dt": "train_data", "dv": "val_data"}, "options": {"poison_epoch": 2}}),
}  # fmt: skip


def write_method(folder, name: str) -> dict:
    """Write the files of a method below ``folder``; the fields of a study that run it."""
    files, function, fields = PUBLISHED[name]
    for path, text in files.items():
        file = folder / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.lstrip())
    (main,) = [path for path, text in files.items() if f"def {function}(" in text or f"class {function[:4]}" in text]
    return {"file": str(folder / name / main), "function": function, **fields}
