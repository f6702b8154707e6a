#include "gallop/compile/device_graph.h"

#include <dlfcn.h>

#include <fmt/format.h>

#include "gallop/base/library.h"
#include "gallop/base/text.h"

namespace gallop::compile {

namespace {

constexpr const char* kLibrary = "libgallop_cuda.so";

}  // namespace

std::unique_ptr<DeviceGraph> make_device_graph_of(const std::string& library, c10::Device device,
                                                  std::string& missing) {
  // Never unloaded: its graphs may live as long as the program.
  void* loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* make = loaded == nullptr ? nullptr : dlsym(loaded, kMakeCudaGraph);
  if (make == nullptr) {
    missing = fmt::format("steps are not captured as CUDA graphs: {}", printable(dlerror()));
    return nullptr;
  }
  return std::unique_ptr<DeviceGraph>(reinterpret_cast<MakeCudaGraph>(make)(device.index()));
}

std::unique_ptr<DeviceGraph> make_device_graph(c10::Device device, std::string& missing) {
  if (!device.is_cuda()) return nullptr;
  return make_device_graph_of(find_program_library(kLibrary), device, missing);
}

}  // namespace gallop::compile
