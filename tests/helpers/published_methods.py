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
    unlearning_teacher.eval()
    full_trained_teacher.eval()
    assert optimizer == 'adam' and num_workers == 0
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(epochs):
        for x, bad in DataLoader(both, batch_size=batch_size, shuffle=True, num_workers=num_workers, pin_memory=False):
            x, bad = x.to(device), bad.to(device)[:, None]
            with torch.no_grad():
                good = F.softmax(full_trained_teacher(x) / KL_temperature, dim=1)
                target = (1 - bad) * good + bad * F.softmax(unlearning_teacher(x) / KL_temperature, dim=1)
            optimizer.zero_grad()
            F.kl_div(F.log_softmax(model(x) / KL_temperature, dim=1), target).backward()
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
    model = model.eval()
    of_forget = importances(model, forget_train_dl, device)
    of_all = importances(model, full_train_dl, device)
    assert len(full_train_dl.dataset) == len(retain_train_dl.dataset) + len(forget_train_dl.dataset)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            where = of_forget[name] > selection_weighting * of_all[name]
            factor = (dampening_constant * of_all[name] / of_forget[name].clamp(min=1e-12)).clamp(max=1)
            weight[where] = weight[where] * factor[where]
    return 0.5, 0.5, {"entropy": 1.0}
""", "ssd.py": """
from torch.nn import functional as F


def importances(model, loader, device):
    found = {name: weight * 0 for name, weight in model.named_parameters()}
    for x, _, y in loader:
        model.zero_grad()
        F.cross_entropy(model(x.to(device)), y.to(device)).backward()
        for name, weight in model.named_parameters():
            found[name] = found[name].detach() + weight.grad ** 2
    return found
"""}, "ssd_tuning", {"batch": "x, y, y", "options": {"dampening_constant": 1, "selection_weighting": 0.5,
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
    test_model = copy.deepcopy(ori_model).to(device)
    unlearn_model = copy.deepcopy(ori_model).to(device)
    optimizer = torch.optim.SGD(unlearn_model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(poison_epoch):
        for x, y in train_forget_loader:
            x, y = x.to(device).requires_grad_(), y.to(device)
            nn.functional.cross_entropy(test_model(x), y).backward()
            with torch.no_grad():
                nearest = test_model(x + bound * x.grad.sign()).argmax(1)
            optimizer.zero_grad()
            nn.functional.cross_entropy(unlearn_model(x.detach()), nearest).backward()
            optimizer.step()
    return unlearn_model
"""}, "boundary_shrink", {"give": {"dt": "train_data", "dv": "val_data"}, "options": {"poison_epoch": 2}}),
    # UNSIR (Tarun et al. 2023) as in the code of SSD: the number of classes, samples one by one.
    "unsir": (
        {"strategies.py": """
import torch
from torch.utils.data import ConcatDataset, DataLoader


def UNSIR(model, unlearning_teacher, retain_train_dl, retain_valid_dl, forget_train_dl, forget_valid_dl, valid_dl,
          num_classes, forget_class, device, **kwargs):
    by_class = {i: [] for i in range(num_classes)}
    for x, label, same in ConcatDataset((retain_train_dl.dataset, forget_train_dl.dataset)):
        by_class[same].append((x, label))
    shape = by_class[1][0][0].shape
    noise = torch.nn.Parameter(torch.randn(8, *shape, device=device))
    optimizer = torch.optim.Adam([noise], lr=0.1)
    for _ in range(5):
        labels = torch.full((8,), forget_class, device=device)
        loss = -torch.nn.functional.cross_entropy(model(noise), labels) + 0.1 * noise.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    impair = [(x, forget_class) for x in noise.detach()]
    impair += [pair for i in range(num_classes) if i != forget_class for pair in by_class[i][:20]]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for x, y in DataLoader(impair, batch_size=8, shuffle=True):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
        optimizer.step()
    return [0.1, 0.2]
"""}, "UNSIR", {"batch": "x, y, y", "options": {"forget_class": 0}}),
    # Label-free SSD (Foster et al. 2024): no labels read, a device with an underscore, a set that was filtered.
    "lfssd": (
        {"lfssd.py": """
import torch


def lfssd_tuning(model, forget_train_dl, dampening_constant, selection_weighting, full_train_dl, device_, frac_dl,
                 filtered_loader, x_d=False, optimizer=None, original_importances=None):
    def importances(loader):
        found = {name: torch.zeros_like(weight) for name, weight in model.named_parameters()}
        for x, *_ in loader:
            model.zero_grad()
            model(x.to(device_)).norm(dim=1).mean().backward()
            for name, weight in model.named_parameters():
                found[name] += weight.grad.abs()
        return found

    mine, all_ = importances(forget_train_dl), importances(filtered_loader)
    assert optimizer is None and frac_dl == 0.25
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight[mine[name] > selection_weighting * all_[name]] *= 0.5 * dampening_constant
    return model.state_dict()
"""}, "lfssd_tuning", {"give": {"filtered_loader": "retain_loader"},
                       "options": {"dampening_constant": 1.0, "selection_weighting": 0.1, "frac_dl": 0.25}}),
    # NegGrad+ as in Deep Unlearn (Cadet et al. 2024): criterion and optimiser are made by the caller.
    "neggrad_plus": (
        {"neggradplus.py": """
import copy
from itertools import cycle


def negative_grad(model, retain_loader, forget_loader, criterion, optimizer, weight_decay, alpha, epochs):
    start = copy.deepcopy(model)
    for _ in range(epochs):
        for (x, y), (u, v) in zip(retain_loader, cycle(forget_loader)):
            far = sum((a - b.detach()).square().sum() for a, b in zip(model.parameters(), start.parameters()))
            loss = alpha * (criterion(model(x), y) + weight_decay * far) - (1 - alpha) * criterion(model(u), v)
            model.zero_grad()
            loss.backward()
            optimizer.step()
    return model
"""}, "negative_grad", {"options": {"optimizer": {"name": "SGD", "lr": 0.05}, "weight_decay": 0.01, "alpha": 0.9,
                                    "epochs": 1}}),
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
