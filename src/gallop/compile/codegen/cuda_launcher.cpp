#include "gallop/compile/codegen/cuda_launcher.h"

#include <array>
#include <utility>

#include <c10/core/DeviceGuard.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/compile/codegen/cuda_source.h"
#include "gallop/kernel/cuda/update.h"

namespace gallop::compile {

namespace {

/// A text with its kernels.
struct Text {
  const char* path;
  std::vector<const char*> before;  // Headers.
  std::vector<std::string> kernels;
  std::string behind{};
};

Text update_text() {
  Text text{kernel::kUpdateText,
            {"gallop/kernel/cuda/philox_cuda.h", "gallop/kernel/cuda/update_slots.h",
             "gallop/kernel/update_rules.h"},
            {}};
  text.behind =
      "namespace gallop_cuda {\nusing gallop::kernel::RuleOf;\n"
      "using gallop::kernel::UpdateRules;\n";
  for (const kernel::UpdateKernel& kernel : kernel::update_kernels()) {
    text.behind +=
        fmt::format("GALLOP_CUDA_KERNEL({}) {{ {}(a); }}\n", kernel.name, kernel.function);
    text.kernels.push_back(kernel.name);
  }
  text.behind += "}  // namespace gallop_cuda\n";
  return text;
}

const std::array<Text, 3>& all_texts() {
  static const std::array<Text, 3> kTexts = {
      {{kernel::kCrossEntropyText,
        {"gallop/kernel/cuda/cross_entropy_slots.h"},
        {"gallop_cross_entropy_fp32", "gallop_cross_entropy_bf16", "gallop_cross_entropy_fp16",
         "gallop_cross_entropy_backward_fp32", "gallop_cross_entropy_backward_bf16",
         "gallop_cross_entropy_backward_fp16", "gallop_cross_entropy_sum"}},
       {kernel::kDropoutText,
        {"gallop/kernel/cuda/philox_cuda.h", "gallop/kernel/cuda/dropout_slots.h"},
        {"gallop_dropout_fp32", "gallop_dropout_bf16", "gallop_dropout_fp16"}},
       update_text()}};
  return kTexts;
}

const Text& text_at(const std::string& path) {
  for (const Text& text : all_texts()) {
    if (path == text.path) return text;
  }
  throw InternalError(path + " has no kernels for GPUs");
}

}  // namespace

KernelSource cuda_text(const std::string& path) {
  const Text& known = text_at(path);
  std::string text = cuda_header("gallop/kernel/cuda/kernel_slots.h") +
                     cuda_header("gallop/kernel/cuda/kernel_cuda.h");
  for (const char* header : known.before) text += cuda_header(header);
  text += cuda_header(path) + known.behind;
  std::string symbol = "gallop_" + xxh3_128(text);
  return {.symbol = std::move(symbol), .text = std::move(text)};
}

const std::vector<std::string>& cuda_text_kernels(const std::string& path) {
  return text_at(path).kernels;
}

CudaTextKernels::CudaTextKernels(CudaCompiler& compiler, int device, const std::string& driver) {
  driver_ = CudaDriver::open(lost_, driver);
  if (!driver_) return;
  try {
    std::vector<KernelSource> sources;
    for (const Text& text : all_texts()) sources.push_back(cuda_text(text.path));
    const auto binaries = compiler.submit(sources, driver_->capability(device));
    for (size_t i = 0; i < sources.size(); ++i) {
      const CudaBinary& binary = binaries[i].get();
      if (binary.image.empty()) {
        lost_ = binary.lost;
        return;
      }
      modules_.push_back(driver_->load(binary.image));
      for (const std::string& name : all_texts()[i].kernels) {
        functions_[name] = driver_->find(modules_.back(), name);
      }
    }
  } catch (const DeviceError& error) {
    lost_ = error.what();
  }
}

void CudaTextKernels::launch(const kernel::CudaLaunch& launch, void* stream) const {
  const auto found = functions_.find(launch.kernel);
  if (!lost_.empty() || found == functions_.end() || launch.slots.size() != kernel::kCudaSlots) {
    throw InternalError(fmt::format("{}: no such kernel for GPUs {}", launch.kernel, lost_));
  }
  auto slots = launch.slots;
  driver_->launch(found->second, {launch.blocks, 1}, {kernel::kCudaThreads, 1}, stream, slots);
}

NvrtcLauncher::NvrtcLauncher(CudaCompilerOptions options, std::string driver)
    : compiler_(std::move(options)), driver_(std::move(driver)) {}

CudaTextKernels& NvrtcLauncher::kernels_of(c10::Device device) {
  const std::lock_guard lock(mutex_);
  auto& kernels = kernels_[device.index()];
  if (!kernels) {
    // LibTorch's context of the GPU is the current one from here on.
    const c10::OptionalDeviceGuard back(device);
    c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
    kernels = std::make_unique<CudaTextKernels>(compiler_, device.index(), driver_);
  }
  return *kernels;
}

bool NvrtcLauncher::can_launch(c10::Device device) { return kernels_of(device).lost().empty(); }

std::string NvrtcLauncher::lost(c10::Device device) {
  const std::string& reason = kernels_of(device).lost();
  return reason.empty() ? "" : "the GPU does without kernels of its own: " + reason;
}

void NvrtcLauncher::launch(const kernel::CudaLaunch& launch) {
  CudaTextKernels& kernels = kernels_of(launch.device);
  const c10::OptionalDeviceGuard on(launch.device);
  const c10::Stream stream =
      c10::impl::VirtualGuardImpl(launch.device.type()).getStream(launch.device);
  kernels.launch(launch, stream.native_handle());
}

}  // namespace gallop::compile
