#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::parallel {

/// What the processes of a training do together. Each calls the same functions in the same order,
/// one thread at a time. All throw DeviceError, which names this process, the step and the call,
/// where another process is gone or does not answer in time; nothing can be done together after
/// that.
class Collectives {
 public:
  virtual ~Collectives() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Starts to replace what `tensor` holds, which is dense, by the sum of what it holds in all
  /// processes: the same bits in each. Until wait() nobody reads or writes it.
  virtual void start_sum(const at::Tensor& tensor) = 0;
  /// Waits for the sum that start_sum() has started for this tensor.
  virtual void wait(const at::Tensor& tensor) = 0;
  /// Replaces what `tensor` holds by what it holds in process 0.
  virtual void broadcast(const at::Tensor& tensor) = 0;

  /// The step that errors name from here on, counted from 1; 0 before the first.
  virtual void set_step(int64_t step) = 0;
};

/// How processes find each other.
struct Meeting {
  int rank = 0, size = 1;
  /// Where the store is that all meet in; see StoreServer.
  std::string host = "127.0.0.1";
  int port = 29500;
  /// Whether somebody else serves it; else process 0 does.
  bool store_is_there = false;
  /// Tells the processes of one start from those of others that used the same store.
  std::string name = "0";
  double start_seconds = 60;  ///< For all to come.
  double seconds = 10;        ///< For each call.
};

/// Waits for all to come. Throws DeviceError where they do not.
std::unique_ptr<Collectives> meet(const Meeting& meeting);

/// The sums of these numbers over all processes.
std::vector<double> sum_over_all(Collectives& collectives, const std::vector<double>& numbers);

/// The text that process 0 gives, in all.
std::string text_of_first(Collectives& collectives, const std::string& text);

/// Throws UsageError in all processes where one has another text than process 0. `what` says what
/// it tells of: "the recipe".
void require_same(Collectives& collectives, const std::string& what, const std::string& text);

}  // namespace gallop::parallel
