#include "worker/core/read_at_import.h"

#include <algorithm>
#include <array>

namespace troupe::worker {
namespace {

struct Row {
  std::string_view library;
  std::string_view variable;  // a trailing * stands for any text
  // the library is loaded by every zygote (torch._dynamo has loaded triton and sympy)
  bool always;
};

constexpr std::array kRows = {
    Row{"the loader", "LD_*", true},
    Row{"the C library", "GLIBC_TUNABLES", true},
    Row{"the C library", "MALLOC_*", true},
    Row{"python", "PYTHON*", true},
    Row{"openmp", "OMP_*", true},
    Row{"libgomp", "GOMP_*", true},
    Row{"libiomp", "KMP_*", true},
    Row{"openblas", "OPENBLAS_*", true},
    Row{"mkl", "MKL_*", true},
    Row{"onednn", "ONEDNN_*", true},
    Row{"onednn", "DNNL_*", true},
    Row{"numpy", "NPY_*", true},
    Row{"numpy", "NUMPY_*", true},
    Row{"torch", "TORCH_*", true},
    Row{"torch", "PYTORCH_*", true},
    Row{"torch", "ATEN_*", true},
    Row{"torch._dynamo", "TORCHDYNAMO_*", true},
    Row{"torch._inductor", "TORCHINDUCTOR_*", true},
    Row{"triton", "TRITON_*", true},
    Row{"sympy", "SYMPY_*", true},
    Row{"mpmath", "MPMATH_*", true},
    Row{"huggingface_hub", "HF_*", false},
    Row{"huggingface_hub", "HUGGINGFACE_*", false},
    Row{"transformers", "TRANSFORMERS_*", false},
    Row{"transformers", "USE_*", false},
    Row{"tokenizers", "TOKENIZERS_*", false},
    Row{"tokenizers", "RAYON_*", false},
    Row{"datasets", "DATASETS_*", false},
    Row{"accelerate", "ACCELERATE_*", false},
    Row{"lightning", "LIGHTNING_*", false},
    Row{"lightning", "PL_*", false},
    Row{"deepspeed", "DS_*", false},
    Row{"deepspeed", "DEEPSPEED_*", false},
    Row{"tensorflow", "TF_*", false},
    Row{"jax", "JAX_*", false},
    Row{"jax", "XLA_*", false},
    Row{"matplotlib", "MPL*", false},
    Row{"numba", "NUMBA_*", false},
    Row{"numexpr", "NUMEXPR_*", false},
    Row{"polars", "POLARS_*", false},
    Row{"mlflow", "MLFLOW_*", false},
};

// Variables that these patterns match and that are read when they are used: for these no process
// need be started anew.
constexpr std::array kReadAtUse = {
    // Passed to the pools after the fork (`_process/threads.py`).
    std::string_view("OMP_NUM_THREADS"),
    std::string_view("OPENBLAS_NUM_THREADS"),
    std::string_view("OPENBLAS_DEFAULT_NUM_THREADS"),
    std::string_view("MKL_NUM_THREADS"),
    // When a group is made, a model fetched, an extension built.
    std::string_view("TORCH_NCCL_*"),
    std::string_view("TORCH_GLOO_*"),
    std::string_view("TORCH_HOME"),
    std::string_view("TORCH_EXTENSIONS_DIR"),
    std::string_view("HF_TOKEN"),
    // Set by libraries themselves where they are loaded or first used, so that what a program
    // starts would differ for nothing.
    std::string_view("KMP_DUPLICATE_LIB_OK"),
    std::string_view("KMP_INIT_AT_FORK"),
    std::string_view("TORCHINDUCTOR_CACHE_DIR"),
    std::string_view("TRITON_CACHE_DIR"),
    // The interpreter's own, which the import path of a process stands for, and what it does at its
    // streams.
    std::string_view("PYTHONPATH"),
    std::string_view("PYTHONUNBUFFERED"),
    std::string_view("PYTHONSTARTUP"),
};

bool Matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty() || pattern.back() != '*') return pattern == name;
  return name.substr(0, pattern.size() - 1) == pattern.substr(0, pattern.size() - 1);
}

}  // namespace

bool IsReadAtImport(std::string_view name, bool preimports) {
  const auto matches = [&](std::string_view pattern) { return Matches(pattern, name); };
  if (std::any_of(kReadAtUse.begin(), kReadAtUse.end(), matches)) return false;
  return std::any_of(kRows.begin(), kRows.end(), [&](const Row& row) {
    return (row.always || preimports) && matches(row.variable);
  });
}

}  // namespace troupe::worker
