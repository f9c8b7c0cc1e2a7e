"""A training loop of one's own: fp16 with a gradient scaler, and the clipping in the wrong place."""

import torch


def train(model, optimizer, batches):
    scaler = torch.amp.GradScaler("cuda")
    for inputs, labels in batches:
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
