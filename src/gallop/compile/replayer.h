#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/compile/device_graph.h"
#include "gallop/compile/executor.h"

namespace gallop::compile {

/// Runs a graph node by node for the first time, and from then on as one graph of the device where
/// it has such a thing. Then the host waits for nothing: arguments are copied into tensors that the
/// device's graph reads, and results are copies of those that it writes.
class Replayer {
 public:
  explicit Replayer(std::unique_ptr<Executor> executor, MakeDeviceGraph make = make_device_graph);

  /// As Executor::run().
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs);

  const Executor& executor() const { return *executor_; }

  /// Whether run() starts a graph of the device.
  bool is_captured() const { return captured_ != nullptr; }

  /// Why it never will, in one line; empty where it may, and where the device has no such thing.
  const std::string& fallback_reason() const { return fallback_reason_; }

 private:
  void capture(const std::vector<at::Tensor>& inputs);
  std::vector<at::Tensor> replay(const std::vector<at::Tensor>& inputs);

  std::unique_ptr<Executor> executor_;
  MakeDeviceGraph make_;
  bool is_warm_ = false;
  std::string fallback_reason_;
  std::vector<at::Tensor> inputs_, outputs_;  // Of the device's graph.
  std::unique_ptr<DeviceGraph> captured_;
};

}  // namespace gallop::compile
