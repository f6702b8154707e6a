#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace gallop::train {

/// Results of steps, copied to the host asynchronously while the device continues.
class AsyncResults {
 public:
  virtual ~AsyncResults() = default;

  /// Starts to copy an fp64 tensor [n], after the current stream's pending work. Does not wait.
  /// Throws InternalError if is_full(), or if n exceeds the capacity.
  virtual void push(const at::Tensor& numbers) = 0;

  /// The maximum number of steps whose results are in flight.
  virtual int64_t max_in_flight() const = 0;
  /// Whether the oldest result has arrived, or there is none.
  virtual bool is_there() const = 0;
  /// Whether the maximum number of results is in flight, so that one must be taken before the next
  /// push().
  virtual bool is_full() const = 0;

  /// Waits for the oldest result and returns it. Throws InternalError if there is none.
  virtual std::vector<double> pop() = 0;
};

/// Makes results of at most `most_numbers` elements per step. Null for the CPU, whose results are
/// available when a step returns.
using MakeAsyncResults =
    std::function<std::unique_ptr<AsyncResults>(c10::Device device, int64_t most_numbers)>;
std::unique_ptr<AsyncResults> make_async_results(c10::Device device, int64_t most_numbers);

}  // namespace gallop::train
