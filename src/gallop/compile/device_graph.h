#pragma once

#include <functional>
#include <memory>
#include <string>

#include <c10/core/Device.h>

namespace gallop::compile {

/// Work of a device that is captured once and replayed by a single launch: a CUDA graph. It has its
/// own memory pool, and random generators advance from replay to replay.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  /// Captures everything that `work` launches on the current stream, without executing it. Once
  /// only. Throws what `work` throws, and c10::Error if the device cannot capture it.
  virtual void capture(const std::function<void()>& work) = 0;

  /// Launches the work on the current stream.
  virtual void replay() = 0;
};

/// Makes a device graph. Null if the device has none; if it should have one, `missing` is one line
/// with the reason.
using MakeDeviceGraph =
    std::function<std::unique_ptr<DeviceGraph>(c10::Device device, std::string& missing)>;

/// Makes CUDA graphs for GPUs, from the library libgallop_cuda.so beside the program or in the
/// folder lib beside the program's; none for the CPU.
std::unique_ptr<DeviceGraph> make_device_graph(c10::Device device, std::string& missing);

/// The function that the library exports under this name.
using MakeCudaGraph = DeviceGraph* (*)(int device);
inline constexpr const char* kMakeCudaGraph = "gallop_make_cuda_graph";

/// As make_device_graph(), from another library.
std::unique_ptr<DeviceGraph> make_device_graph_of(const std::string& library, c10::Device device,
                                                  std::string& missing);

}  // namespace gallop::compile
