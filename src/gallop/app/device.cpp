#include "gallop/app/device.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/compile/codegen/cuda_driver.h"
#include "gallop/compile/codegen/cuda_launcher.h"
#include "gallop/kernel/cuda/launcher.h"
#include "gallop/kernel/isa.h"
#include "gallop/launch/world.h"

namespace gallop::app {

namespace {

constexpr bool kBuiltWithCuda = GALLOP_CUDA != 0;

bool has_nvidia_driver() { return fs::exists("/dev/nvidiactl"); }

// A killed run must resume bit-identically, so that reductions must be deterministic. For
// attention, LibTorch then uses its flash attention instead of cuDNN's. Operators of exported
// models may have no deterministic implementation, which is an error by default.
void set_deterministic(const std::string& deterministic) {
  const bool is_required = deterministic != "false";
  at::globalContext().setDeterministicCuDNN(is_required);
  at::globalContext().setBenchmarkCuDNN(!is_required);
  at::globalContext().setDeterministicAlgorithms(is_required,
                                                 /*warn_only=*/deterministic == "warn");
  at::globalContext().setDeterministicFillUninitializedMemory(false);
}

// Only this library registers CUDA's kernels, so a machine without a GPU never loads its 500 MB.
void load_cuda() {
  if (!kBuiltWithCuda) {
    throw DeviceError(
        "this gallop was built without CUDA (-DGALLOP_CUDA=OFF); use train.device=cpu, or build it "
        "with CUDA");
  }
  if (!has_nvidia_driver()) {
    throw DeviceError(
        "train.device is cuda, but this machine has no NVIDIA driver (/dev/nvidiactl); "
        "use train.device=cpu or auto");
  }
  // Read by cuBLAS when it is loaded: without it, GEMMs may not be deterministic
  // (docs.nvidia.com/cuda/cublas, results reproducibility). A value set by the user is kept.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    throw DeviceError(fmt::format(
        "cannot load LibTorch's CUDA library: {}; tools/fetch-libtorch --cuda gets what it needs",
        dlerror()));
  }
  if (!at::hasCUDA()) {
    throw DeviceError("LibTorch's CUDA library finds no GPU that it can use; see nvidia-smi");
  }
}

c10::Device gpu_of_this_process() {
  const launch::World world = launch::read_world(launch::process_environment());
  const c10::impl::VirtualGuardImpl gpus(c10::kCUDA);
  const int index = launch::choose_gpu(world, gpus.deviceCount());
  const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
  gpus.setDevice(device);
  return device;
}

}  // namespace

DeviceChoice choose_device(const std::string& name, const std::string& deterministic) {
  if (name == "cpu") return {c10::kCPU, ""};
  if (name == "auto" && !(kBuiltWithCuda && has_nvidia_driver())) return {c10::kCPU, ""};
  try {
    load_cuda();
  } catch (const DeviceError& error) {
    if (name != "auto") throw;
    return {c10::kCPU, fmt::format("using the CPU, as {}", error.what())};
  }
  set_deterministic(deterministic);
  return {gpu_of_this_process(), ""};
}

std::optional<int> capability_of(c10::Device device) {
  if (!device.is_cuda()) return std::nullopt;
  std::string missing;
  const auto driver = compile::CudaDriver::open(missing);
  if (!driver) throw DeviceError("the GPU driver does not report its capabilities: " + missing);
  return driver->capability(device.has_index() ? device.index() : 0);
}

GpuKernels::GpuKernels(c10::Device device) {
  if (!device.is_cuda() || !kernel::kernels_enabled()) return;
  auto launcher = std::make_shared<compile::NvrtcLauncher>();
  fallback_reason_ = launcher->fallback_reason(device);
  before_ = kernel::set_cuda_launcher(std::move(launcher));
  is_set_ = true;
}

GpuKernels::~GpuKernels() {
  if (is_set_) kernel::set_cuda_launcher(std::move(before_));
}

}  // namespace gallop::app
