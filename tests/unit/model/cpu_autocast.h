#pragma once

#include <ATen/autocast_mode.h>

namespace gallop::model {

/// Autocast to bf16 on the CPU while it lives.
class Bf16Autocast {
 public:
  Bf16Autocast() {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  }
  ~Bf16Autocast() {
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
  Bf16Autocast(const Bf16Autocast&) = delete;
  Bf16Autocast& operator=(const Bf16Autocast&) = delete;
};

}  // namespace gallop::model
