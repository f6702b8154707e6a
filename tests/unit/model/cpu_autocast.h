#pragma once

#include <ATen/autocast_mode.h>

namespace gallop::model {

/// Enables CPU autocast while it is alive.
class CpuAutocast {
 public:
  explicit CpuAutocast(at::ScalarType format) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, format);
  }
  ~CpuAutocast() {
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
  CpuAutocast(const CpuAutocast&) = delete;
  CpuAutocast& operator=(const CpuAutocast&) = delete;
};

}  // namespace gallop::model
