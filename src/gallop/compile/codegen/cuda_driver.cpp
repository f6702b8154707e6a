#include "gallop/compile/codegen/cuda_driver.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/library.h"
#include "gallop/base/text.h"

namespace gallop::compile {

namespace {

constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;

}  // namespace

// Handles are pointers, devices ints, and 0 is success.
struct CudaDriver::Functions {
  std::shared_ptr<void> library;
  int (*init)(unsigned) = nullptr;
  int (*error_text)(int, const char**) = nullptr;
  int (*get_device)(int*, int) = nullptr;
  int (*get_attribute)(int*, int, int) = nullptr;
  int (*get_context)(void**) = nullptr;
  int (*set_context)(void*) = nullptr;
  int (*retain_context)(void**, int) = nullptr;
  int (*load_module)(void**, const void*) = nullptr;
  int (*unload_module)(void*) = nullptr;
  int (*get_function)(void**, void*, const char*) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**) = nullptr;

  // The name of the first missing function, or empty.
  std::string find_all() {
    FunctionFinder finder(library.get());
    finder.find(init, "cuInit");
    finder.find(error_text, "cuGetErrorString");
    finder.find(get_device, "cuDeviceGet");
    finder.find(get_attribute, "cuDeviceGetAttribute");
    finder.find(get_context, "cuCtxGetCurrent");
    finder.find(set_context, "cuCtxSetCurrent");
    finder.find(retain_context, "cuDevicePrimaryCtxRetain");
    finder.find(load_module, "cuModuleLoadData");
    finder.find(unload_module, "cuModuleUnload");
    finder.find(get_function, "cuModuleGetFunction");
    finder.find(launch, "cuLaunchKernel");
    return finder.missing();
  }
};

CudaDriver::CudaDriver(std::shared_ptr<const Functions> functions)
    : functions_(std::move(functions)) {}

std::shared_ptr<const CudaDriver> CudaDriver::open(std::string& missing, const std::string& name) {
  auto functions = std::make_shared<Functions>();
  std::string error;
  functions->library = load_library(name, error);
  if (!functions->library) {
    missing = fmt::format("the GPU's driver cannot be loaded: {}", printable(error));
    return nullptr;
  }
  const std::string lacks = functions->find_all();
  if (!lacks.empty()) {
    missing = fmt::format("the GPU's driver, {}, lacks {}", printable(name), lacks);
    return nullptr;
  }
  std::shared_ptr<const CudaDriver> driver(new CudaDriver(std::move(functions)));
  try {
    driver->check(driver->functions_->init(0), "cannot start");
  } catch (const DeviceError& failure) {
    missing = failure.what();
    return nullptr;
  }
  return driver;
}

void CudaDriver::check(int code, const char* what) const {
  if (code == 0) return;
  const char* text = nullptr;
  if (functions_->error_text(code, &text) != 0 || text == nullptr) text = "unknown error";
  throw DeviceError(fmt::format("the GPU's driver {}: {} ({})", what, printable(text), code));
}

int CudaDriver::capability(int device) const {
  int handle = 0, major = 0, minor = 0;
  check(functions_->get_device(&handle, device), "cannot find the GPU");
  check(functions_->get_attribute(&major, kCapabilityMajor, handle),
        "cannot query the compute capability");
  check(functions_->get_attribute(&minor, kCapabilityMinor, handle),
        "cannot query the compute capability");
  return major * 10 + minor;
}

void CudaDriver::need_context(int device) const {
  void* context = nullptr;
  check(functions_->get_context(&context), "cannot query the thread's context");
  if (context != nullptr) return;
  int handle = 0;
  check(functions_->get_device(&handle, device), "cannot find the GPU");
  // Never released: the process keeps the primary context.
  check(functions_->retain_context(&context, handle), "cannot create a context");
  check(functions_->set_context(context), "cannot activate a context");
}

std::shared_ptr<void> CudaDriver::load(const std::string& image, int device) const {
  need_context(device);
  void* module = nullptr;
  check(functions_->load_module(&module, image.c_str()), "cannot load a kernel");
  return {module, [functions = functions_](void* handle) { functions->unload_module(handle); }};
}

void* CudaDriver::find(const std::shared_ptr<void>& module, const std::string& name) const {
  void* function = nullptr;
  check(functions_->get_function(&function, module.get(), name.c_str()), "cannot find a kernel");
  return function;
}

void CudaDriver::launch(int device, void* function, std::array<uint32_t, 2> grid,
                        std::array<uint32_t, 2> block, void* stream,
                        std::vector<uint64_t>& slots) const {
  need_context(device);
  std::array<void*, 1> arguments = {slots.data()};
  check(functions_->launch(function, grid[0], grid[1], 1, block[0], block[1], 1, 0, stream,
                           arguments.data(), nullptr),
        "cannot launch a kernel");
}

}  // namespace gallop::compile
