#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace gallop::train {

/// Numbers that steps have computed, on their way to the host while the device goes on.
class AsyncResults {
 public:
  virtual ~AsyncResults() = default;

  /// Starts to copy an fp64 tensor [n], once what the current stream has to do before is done. Does
  /// not wait. Throws InternalError where is_full(), or n is more than there is room for.
  virtual void push(const at::Tensor& numbers) = 0;

  /// Steps whose numbers may be under way at once.
  virtual int64_t max_in_flight() const = 0;
  /// Whether the oldest has arrived, or there is none.
  virtual bool is_there() const = 0;
  /// Whether one must be taken before the next: then the host is far ahead.
  virtual bool is_full() const = 0;

  /// The oldest; waits for it. Throws InternalError where there is none.
  virtual std::vector<double> pop() = 0;
};

/// With room for so many numbers of each step. Null for the CPU, whose results are there when a
/// step returns.
using MakeAsyncResults =
    std::function<std::unique_ptr<AsyncResults>(c10::Device device, int64_t most_numbers)>;
std::unique_ptr<AsyncResults> make_async_results(c10::Device device, int64_t most_numbers);

}  // namespace gallop::train
