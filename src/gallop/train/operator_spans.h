#pragma once

#include <cstdint>

namespace gallop::train {

/// While it lives, LibTorch's operators of all threads are spans of kOperator in a trace
/// (base/trace.h): those of eager steps, as nodes of compiled steps are spans already.
class OperatorSpans {
 public:
  OperatorSpans();
  ~OperatorSpans();
  OperatorSpans(const OperatorSpans&) = delete;
  OperatorSpans& operator=(const OperatorSpans&) = delete;

 private:
  uint64_t handle_;
};

}  // namespace gallop::train
