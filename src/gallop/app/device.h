#pragma once

#include <string>

#include <c10/core/Device.h>

namespace gallop::app {

struct DeviceChoice {
  c10::Device device;
  std::string note;  ///< Why "auto" leaves a GPU that is here alone; else empty.
};

/// The device that `train.device` names: "cpu"; "cuda" loads LibTorch's CUDA library, which needs a
/// GPU and its driver, and throws DeviceError where that fails; "auto" takes a GPU where there is
/// one that works.
DeviceChoice choose_device(const std::string& name);

}  // namespace gallop::app
