#pragma once

#include <cstdint>

namespace gallop::kernel {

enum class Activation : uint8_t {
  kGelu,      ///< x P(X <= x) of a standard normal X (Hendrycks and Gimpel 2016).
  kGeluTanh,  ///< The same paper's approximation: x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)).
  kSilu,      ///< x sigmoid(x)
  kRelu,
};

}  // namespace gallop::kernel
