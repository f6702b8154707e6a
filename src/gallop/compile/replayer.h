#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/compile/device_graph.h"
#include "gallop/compile/executor.h"

namespace gallop::compile {

/// Runs a graph node by node for the first time, and from then on as one graph of the device, if it
/// supports that. The host then waits for nothing: arguments are copied into tensors that the
/// device's graph reads, and results are copies of those that it writes.
class Replayer {
 public:
  explicit Replayer(std::unique_ptr<Executor> executor, MakeDeviceGraph make = make_device_graph);

  /// As Executor::run().
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs);

  const Executor& executor() const { return *executor_; }

  /// Whether run() launches a graph of the device.
  bool is_captured() const { return captured_ != nullptr; }

  /// Why the graph cannot be captured, in one line; empty if it may be, and if the device has no
  /// graphs.
  const std::string& fallback_reason() const { return fallback_reason_; }

 private:
  void capture(const std::vector<at::Tensor>& inputs);
  std::vector<at::Tensor> replay(const std::vector<at::Tensor>& inputs);

  std::unique_ptr<Executor> executor_;
  MakeDeviceGraph make_;
  bool is_warm_ = false;
  std::string fallback_reason_;
  std::vector<at::Tensor> inputs_, outputs_;  // Inputs and outputs of the device's graph.
  std::unique_ptr<DeviceGraph> captured_;
};

}  // namespace gallop::compile
