#pragma once

namespace gallop::kernel {

/// While it is alive, kernels_enabled() is false on this thread: layers, losses and optimizers
/// compute with LibTorch's operators. Dropout still draws the same random numbers.
class StockOperatorsScope {
 public:
  StockOperatorsScope();
  ~StockOperatorsScope();
  StockOperatorsScope(const StockOperatorsScope&) = delete;
  StockOperatorsScope& operator=(const StockOperatorsScope&) = delete;

  /// Whether this thread is in one.
  static bool is_there();

 private:
  bool before_;
};

}  // namespace gallop::kernel
