# Sourced: `source /opt/miniconda3/bin/activate [ENVIRONMENT]`.
. /opt/miniconda3/etc/profile.d/conda.sh
conda activate "$@"
