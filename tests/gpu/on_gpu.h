#pragma once

#include <optional>

#include <gtest/gtest.h>

#include "gallop/app/device.h"

namespace gallop {

/// A test, or one with a parameter, on a GPU with Gallop's kernels; skipped without a GPU.
template <typename Test>
class OnGpu : public Test {
 protected:
  void SetUp() override {
    static const app::DeviceChoice choice = app::choose_device("auto");
    if (!choice.device.is_cuda()) GTEST_SKIP() << "no GPU; " << choice.note;
    device_ = choice.device;
    kernels_.emplace(device_);
    ASSERT_EQ(kernels_->fallback_reason(), "");
  }

  c10::Device device_ = c10::kCPU;
  std::optional<app::GpuKernels> kernels_;
};

}  // namespace gallop
