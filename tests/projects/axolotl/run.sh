#!/usr/bin/env bash
accelerate launch --config_file accelerate.yaml -m axolotl.cli.train qlora.yml
