#!/bin/sh
mlx_lm.lora --config lora.yaml
