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

/// A kernel and, if the text only has a template of it, its instantiation, which is appended.
struct TextKernel {
  std::string name, part{}, definition{};
};

/// A text with its kernels.
struct Text {
  const char* path;
  std::vector<const char*> before;  // Headers.
  std::vector<TextKernel> kernels;
};

Text update_text() {
  Text text{kernel::kUpdateText,
            {"gallop/kernel/cuda/philox_cuda.h", "gallop/kernel/cuda/update_slots.h",
             "gallop/kernel/update_rules.h"},
            {}};
  for (const kernel::UpdateKernel& kernel : kernel::update_kernels()) {
    text.kernels.push_back({.name = kernel.name,
                            .part = kernel.part,
                            .definition = fmt::format("GALLOP_CUDA_KERNEL({}) {{ {}(a); }}\n",
                                                      kernel.name, kernel.function)});
  }
  return text;
}

std::vector<TextKernel> in_each_format(std::initializer_list<const char*> names) {
  std::vector<TextKernel> kernels;
  for (const char* name : names) {
    for (const auto format : {c10::kFloat, c10::kBFloat16, c10::kHalf}) {
      kernels.push_back({.name = kernel::cuda_kernel_of(name, format)});
    }
  }
  return kernels;
}

const std::array<Text, 3>& all_texts() {
  static const std::array<Text, 3> kTexts = [] {
    Text cross_entropy{kernel::kCrossEntropyText,
                       {"gallop/kernel/cuda/cross_entropy_slots.h"},
                       in_each_format({"gallop_cross_entropy", "gallop_cross_entropy_backward"})};
    cross_entropy.kernels.push_back({.name = "gallop_cross_entropy_sum"});
    return std::array<Text, 3>{
        {std::move(cross_entropy),
         {kernel::kDropoutText,
          {"gallop/kernel/cuda/philox_cuda.h", "gallop/kernel/cuda/dropout_slots.h"},
          in_each_format({"gallop_dropout"})},
         update_text()}};
  }();
  return kTexts;
}

const Text& text_at(const std::string& path) {
  for (const Text& text : all_texts()) {
    if (path == text.path) return text;
  }
  throw InternalError(path + " has no kernels for GPUs");
}

std::vector<TextKernel> kernels_in(const Text& text, const std::string& part) {
  std::vector<TextKernel> kernels;
  for (const TextKernel& kernel : text.kernels) {
    if (part.empty() || part == kernel.part) kernels.push_back(kernel);
  }
  if (kernels.empty()) throw InternalError(fmt::format("{} has no part {}", text.path, part));
  return kernels;
}

}  // namespace

KernelSource cuda_text(const std::string& path, const std::string& part) {
  const Text& known = text_at(path);
  std::string text = cuda_header("gallop/kernel/cuda/kernel_slots.h") +
                     cuda_header("gallop/kernel/cuda/kernel_cuda.h");
  for (const char* header : known.before) text += cuda_header(header);
  text += cuda_header(path) + "namespace gallop_cuda {\n";
  for (const TextKernel& kernel : kernels_in(known, part)) text += kernel.definition;
  text += "}  // namespace gallop_cuda\n";
  std::string symbol = "gallop_" + xxh3_128(text);
  return {.symbol = std::move(symbol), .text = std::move(text)};
}

std::vector<std::string> cuda_text_kernels(const std::string& path, const std::string& part) {
  std::vector<std::string> names;
  for (const TextKernel& kernel : kernels_in(text_at(path), part)) names.push_back(kernel.name);
  return names;
}

CudaTextKernels::CudaTextKernels(CudaCompiler& compiler, int device, const std::string& driver)
    : compiler_(compiler), device_(device), driver_(CudaDriver::open(fallback_reason_, driver)) {
  if (!driver_) return;
  std::vector<Wanted> texts;
  for (const Text& text : all_texts()) {
    if (text.kernels.front().part.empty()) texts.push_back({.path = text.path, .part = {}});
  }
  try {
    load(texts);
  } catch (const DeviceError& error) {
    fallback_reason_ = error.what();
  }
}

void CudaTextKernels::load(const std::vector<Wanted>& texts) {
  std::vector<KernelSource> sources;
  for (const Wanted& text : texts) sources.push_back(cuda_text(text.path, text.part));
  const auto binaries = compiler_.submit(sources, driver_->capability(device_));
  for (size_t i = 0; i < texts.size(); ++i) {
    const CudaBinary& binary = binaries[i].get();
    if (binary.image.empty()) throw DeviceError(binary.fallback_reason);
    modules_.push_back(driver_->load(binary.image, device_));
    for (const std::string& name : cuda_text_kernels(texts[i].path, texts[i].part)) {
      functions_[name] = driver_->find(modules_.back(), name);
    }
  }
}

void* CudaTextKernels::function_of(const kernel::CudaLaunch& launch) {
  const std::lock_guard lock(mutex_);
  auto found = functions_.find(launch.kernel);
  if (found == functions_.end() && !launch.part.empty()) {
    load({{.path = launch.text, .part = launch.part}});
    found = functions_.find(launch.kernel);
  }
  return found == functions_.end() ? nullptr : found->second;
}

void CudaTextKernels::launch(const kernel::CudaLaunch& launch, void* stream) {
  void* function = fallback_reason_.empty() ? function_of(launch) : nullptr;
  if (function == nullptr || launch.slots.size() != kernel::kCudaSlots) {
    throw InternalError(
        fmt::format("{}: no such kernel for GPUs {}", launch.kernel, fallback_reason_));
  }
  auto slots = launch.slots;
  driver_->launch(device_, function, {launch.blocks, 1}, {kernel::kCudaThreads, 1}, stream, slots);
}

NvrtcLauncher::NvrtcLauncher(CudaCompilerOptions options, std::string driver)
    : compiler_(std::move(options)), driver_(std::move(driver)) {}

CudaTextKernels& NvrtcLauncher::kernels_of(c10::Device device) {
  const std::lock_guard lock(mutex_);
  auto& kernels = kernels_[device.index()];
  if (!kernels) {
    kernels = std::make_unique<CudaTextKernels>(compiler_, device.index(), driver_);
  }
  return *kernels;
}

bool NvrtcLauncher::can_launch(c10::Device device) {
  return kernels_of(device).fallback_reason().empty();
}

std::string NvrtcLauncher::fallback_reason(c10::Device device) {
  const std::string& reason = kernels_of(device).fallback_reason();
  return reason.empty() ? "" : "the GPU falls back to LibTorch's kernels: " + reason;
}

void NvrtcLauncher::launch(const kernel::CudaLaunch& launch) {
  CudaTextKernels& kernels = kernels_of(launch.device);
  const c10::OptionalDeviceGuard on(launch.device);
  const c10::Stream stream =
      c10::impl::VirtualGuardImpl(launch.device.type()).getStream(launch.device);
  kernels.launch(launch, stream.native_handle());
}

}  // namespace gallop::compile
