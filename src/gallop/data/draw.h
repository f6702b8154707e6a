#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gallop/base/philox.h"

namespace gallop::data {

/// Uniform in [low, high], in single precision as torch's uniform_.
inline float draw_uniform(Philox& random, double low, double high) {
  const auto from = static_cast<float>(low);
  return from + random.uniform() * (static_cast<float>(high) - from);
}

/// Normal values, in pairs by Box and Muller (1958); the last one of an odd number is the first of
/// its pair.
void draw_normal(Philox& random, double mean, double sigma, std::span<float> out);

/// A sample of the gamma distribution with scale 1 (Marsaglia and Tsang, "A simple method for
/// generating gamma variables", 2000). `shape` is above 0.
double draw_gamma(Philox& random, double shape);

/// A sample of the symmetric Dirichlet distribution of `count` weights.
std::vector<double> draw_dirichlet(Philox& random, double alpha, size_t count);

}  // namespace gallop::data
