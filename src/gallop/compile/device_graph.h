#pragma once

#include <functional>
#include <memory>
#include <string>

#include <c10/core/Device.h>

namespace gallop::compile {

/// Work that a device has been shown once and then does as often as it is told, at the cost of one
/// start: a CUDA graph. Its memory is its own, and random numbers go on from run to run.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  /// Takes note of all that `work` starts on the current stream; nothing of it is done. Once only.
  /// Throws what `work` throws, and c10::Error where the device cannot repeat what it does.
  virtual void capture(const std::function<void()>& work) = 0;

  /// Starts the work on the current stream.
  virtual void replay() = 0;
};

/// A new one for a device. Null where there is none; where there should be one, `missing` is one
/// line that says why it is not.
using MakeDeviceGraph =
    std::function<std::unique_ptr<DeviceGraph>(c10::Device device, std::string& missing)>;

/// CUDA graphs for GPUs, of the library libgallop_cuda.so that lies beside the program or in the
/// folder lib beside the program's; none for the CPU.
std::unique_ptr<DeviceGraph> make_device_graph(c10::Device device, std::string& missing);

/// The function that the library exports under this name.
using MakeCudaGraph = DeviceGraph* (*)(int device);
inline constexpr const char* kMakeCudaGraph = "gallop_make_cuda_graph";

/// The same of another library.
std::unique_ptr<DeviceGraph> make_device_graph_of(const std::string& library, c10::Device device,
                                                  std::string& missing);

}  // namespace gallop::compile
