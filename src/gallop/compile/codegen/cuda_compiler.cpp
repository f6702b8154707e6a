#include "gallop/compile/codegen/cuda_compiler.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include <c10/core/Device.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/base/library.h"
#include "gallop/base/text.h"
#include "gallop/base/thread_pool.h"
#include "gallop/compile/codegen/cuda_source.h"
#include "gallop/compile/codegen/kernel_cache.h"

namespace gallop::compile {

namespace {

constexpr std::array kNames = {"libnvrtc.so.13", "libnvrtc.so.12"};

/// NVRTC's functions (docs.nvidia.com/cuda/nvrtc); 0 is success.
struct Nvrtc {
  std::shared_ptr<void> library;
  const char* (*error_text)(int) = nullptr;
  int (*version)(int*, int*) = nullptr;
  int (*count_archs)(int*) = nullptr;
  int (*list_archs)(int*) = nullptr;
  int (*create)(void**, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(void**) = nullptr;
  int (*compile)(void*, int, const char* const*) = nullptr;
  int (*log_size)(void*, size_t*) = nullptr;
  int (*log)(void*, char*) = nullptr;
  int (*cubin_size)(void*, size_t*) = nullptr;
  int (*cubin)(void*, char*) = nullptr;
  int (*ptx_size)(void*, size_t*) = nullptr;
  int (*ptx)(void*, char*) = nullptr;

  // The name of the first missing function, or empty.
  std::string find_functions() {
    FunctionFinder finder(library.get());
    finder.find(error_text, "nvrtcGetErrorString");
    finder.find(version, "nvrtcVersion");
    finder.find(count_archs, "nvrtcGetNumSupportedArchs");
    finder.find(list_archs, "nvrtcGetSupportedArchs");
    finder.find(create, "nvrtcCreateProgram");
    finder.find(destroy, "nvrtcDestroyProgram");
    finder.find(compile, "nvrtcCompileProgram");
    finder.find(log_size, "nvrtcGetProgramLogSize");
    finder.find(log, "nvrtcGetProgramLog");
    finder.find(cubin_size, "nvrtcGetCUBINSize");
    finder.find(cubin, "nvrtcGetCUBIN");
    finder.find(ptx_size, "nvrtcGetPTXSize");
    finder.find(ptx, "nvrtcGetPTX");
    return finder.missing();
  }
};

// The folder of LibTorch's libraries, which in its CUDA package contains NVRTC.
fs::path torch_folder() {
  Dl_info info = {};
  const auto address = reinterpret_cast<void*>(
      static_cast<std::string (*)(c10::DeviceType, bool)>(&c10::DeviceTypeName));
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  return fs::path(info.dli_fname).parent_path();
}

std::shared_ptr<void> load_nvrtc(const std::string& name) {
  // NVRTC loads a second library by name without a path, which works if that is already loaded.
  const fs::path folder = fs::path(name).parent_path();
  std::error_code error;
  std::string ignored;
  if (!folder.empty() && fs::exists(name, error)) {
    for (const auto& file : fs::directory_iterator(folder, error)) {
      const std::string stem = file.path().filename().string();
      // Never unloaded, like NVRTC.
      if (stem.starts_with("libnvrtc-builtins.so.")) dlopen(file.path().c_str(), RTLD_NOW);
    }
  }
  return load_library(name, ignored);
}

std::vector<std::string> default_libraries() {
  std::vector<std::string> list;
  for (const char* name : kNames) list.push_back((torch_folder() / name).string());
  list.insert(list.end(), kNames.begin(), kNames.end());
  return list;
}

std::string first_error(const std::string& log) {
  const size_t at = log.find("error");
  const size_t begin = at == std::string::npos ? 0 : log.rfind('\n', at) + 1;
  return printable(log.substr(begin, log.find('\n', begin) - begin));
}

std::string kernel_fallback(const std::string& reason) {
  return "the step falls back to unfused operators: " + reason;
}

}  // namespace

struct CudaCompiler::State {
  CudaCompilerOptions options;
  std::atomic<bool> stop = false;
  std::atomic<int64_t> runs = 0;

  std::once_flag once;
  Nvrtc nvrtc;
  std::string missing, identity;
  std::vector<int> archs;
  std::optional<KernelCache> cache;
  std::string cache_fallback;

  std::mutex mutex;
  std::map<std::string, std::shared_future<CudaBinary>> results;
  std::unique_ptr<ThreadPool> pool;  // Destroyed first.

  void prepare();
  void find_nvrtc();
  CudaBinary make(const KernelSource& source, int capability);
  CudaBinary compile(const KernelSource& source, const std::string& arch, bool to_ptx);
  std::string log_of(void* program) const;
};

void CudaCompiler::State::prepare() {
  std::call_once(once, [this] {
    find_nvrtc();
    try {
      cache.emplace(options.cache_folder, options.cache_bytes);
    } catch (const DeviceError& error) {
      cache_fallback =
          fmt::format("each run compiles its fused kernels again: {}", printable(error.what()));
    }
  });
}

void CudaCompiler::State::find_nvrtc() {
  const auto names = options.libraries.empty() ? default_libraries() : options.libraries;
  for (const std::string& name : names) {
    nvrtc.library = load_nvrtc(name);
    if (!nvrtc.library) continue;
    const std::string lacks = nvrtc.find_functions();
    if (lacks.empty()) break;
    missing = fmt::format("{} lacks {}", printable(name), lacks);
    nvrtc.library = nullptr;
  }
  if (!nvrtc.library) {
    if (!missing.empty()) return;
    std::vector<std::string> printed;
    for (const std::string& name : names) printed.push_back(printable(name));
    missing = fmt::format(
        "there is no NVRTC ({}); tools/fetch-libtorch --cuda or NVIDIA's package cuda-nvrtc has it",
        join_names(printed));
    return;
  }
  missing.clear();
  int major = 0, minor = 0, count = 0;
  nvrtc.version(&major, &minor);
  identity = fmt::format("NVRTC {}.{}", major, minor);
  if (nvrtc.count_archs(&count) == 0 && count > 0) {
    archs.resize(static_cast<size_t>(count));
    nvrtc.list_archs(archs.data());
  }
}

std::string CudaCompiler::State::log_of(void* program) const {
  size_t size = 0;
  if (nvrtc.log_size(program, &size) != 0) return {};
  std::string log(size, '\0');
  nvrtc.log(program, log.data());
  return log;
}

CudaBinary CudaCompiler::State::compile(const KernelSource& source, const std::string& arch,
                                        bool to_ptx) {
  const std::string text = cuda_prefix() + source.text, target = "--gpu-architecture=" + arch;
  void* program = nullptr;
  int code = nvrtc.create(&program, text.c_str(), "loop.cu", 0, nullptr, nullptr);
  if (code != 0) return {.image = {}, .fallback_reason = kernel_fallback(nvrtc.error_text(code))};
  // Multiplications and additions round separately, as in LibTorch's operators.
  const std::array options_list = {target.c_str(), "--std=c++17", "--fmad=false", "-w"};
  ++runs;
  code = nvrtc.compile(program, static_cast<int>(options_list.size()), options_list.data());
  CudaBinary result;
  if (code != 0) {
    result.fallback_reason = kernel_fallback(fmt::format(
        "{} says: {}: {}", identity, nvrtc.error_text(code), first_error(log_of(program))));
  } else {
    size_t size = 0;
    const auto get_size = to_ptx ? nvrtc.ptx_size : nvrtc.cubin_size;
    const auto get = to_ptx ? nvrtc.ptx : nvrtc.cubin;
    if (get_size(program, &size) == 0) result.image.resize(size);
    if (size == 0 || get(program, result.image.data()) != 0) {
      result = {.image = {}, .fallback_reason = kernel_fallback(identity + " returned no binary")};
    }
  }
  nvrtc.destroy(&program);
  return result;
}

CudaBinary CudaCompiler::State::make(const KernelSource& source, int capability) {
  prepare();
  if (stop) return {.image = {}, .fallback_reason = kernel_fallback("the program ended before")};
  if (!missing.empty()) return {.image = {}, .fallback_reason = kernel_fallback(missing)};
  // For a GPU that is newer than NVRTC, the driver compiles PTX.
  const int newest = archs.empty() ? capability : *std::max_element(archs.begin(), archs.end());
  const bool known = std::find(archs.begin(), archs.end(), capability) != archs.end();
  if (!known && capability < newest) {
    return {.image = {},
            .fallback_reason =
                kernel_fallback(fmt::format("{} does not support compute capability {}.{}",
                                            identity, capability / 10, capability % 10))};
  }
  const std::string arch =
      known ? fmt::format("sm_{}", capability) : fmt::format("compute_{}", newest);
  Hasher hasher;
  for (const std::string& part : {cuda_prefix(), source.text, identity, arch}) {
    const uint64_t size = part.size();
    hasher.update(&size, sizeof size);
    hasher.update(part.data(), part.size());
  }
  const std::string key = hasher.digest();
  if (cache) {
    if (auto image = cache->find_binary(key))
      return {.image = std::move(*image), .fallback_reason = {}};
  }
  CudaBinary result = compile(source, arch, !known);
  if (result.image.empty()) return result;
  result.fallback_reason = cache_fallback;
  if (!cache) return result;
  try {
    cache->publish_binary(result.image, key);
  } catch (const Error& error) {
    result.fallback_reason =
        fmt::format("each run compiles its fused kernels again: {}", printable(error.what()));
  }
  return result;
}

CudaCompiler::CudaCompiler(CudaCompilerOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  state_->pool = std::make_unique<ThreadPool>(std::max(1, state_->options.threads), "compile-cuda");
}

CudaCompiler::~CudaCompiler() { state_->stop = true; }

std::vector<std::shared_future<CudaBinary>> CudaCompiler::submit(
    const std::vector<KernelSource>& kernels, int capability) {
  std::vector<std::shared_future<CudaBinary>> results;
  const std::lock_guard lock(state_->mutex);
  for (const KernelSource& kernel : kernels) {
    auto& known = state_->results[fmt::format("{} {}", capability, kernel.symbol)];
    if (!known.valid()) {
      auto promise = std::make_shared<std::promise<CudaBinary>>();
      known = promise->get_future().share();
      state_->pool->submit([this, promise, kernel, capability] {
        promise->set_value(state_->make(kernel, capability));
      });
    }
    results.push_back(known);
  }
  return results;
}

bool CudaCompiler::is_there(std::string& why) {
  state_->prepare();
  why = state_->missing;
  return why.empty();
}

int64_t CudaCompiler::runs() const { return state_->runs; }

}  // namespace gallop::compile
