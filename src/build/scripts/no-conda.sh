#!/bin/sh
# The environment is locked: there is nothing that conda could do here.
echo "conda $*: this image has no conda; its one environment, testbed, is /opt/miniconda3/envs/testbed" >&2
exit 1
