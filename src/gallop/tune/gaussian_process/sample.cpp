#include "gallop/tune/gaussian_process/sample.h"

#include <algorithm>

#include "gallop/tune/samplers/sobol.h"

namespace gallop::tune {

Matrix even_sample(size_t count, size_t dimensions, Random& random) {
  const size_t even = std::min(dimensions, Sobol::kMostDimensions);
  const Sobol sobol(even);
  const uint64_t seed = random.below(size_t{1} << 62);
  Matrix sample(count, dimensions);
  for (size_t i = 0; i < count; ++i) {
    const std::vector<uint32_t> point = sobol.at(i);
    for (size_t d = 0; d < dimensions; ++d) {
      const bool is_even = d < even;
      const double position = is_even ? scrambled(point[d], seed, d) + 0.5
                                      : static_cast<double>(random.below(size_t{1} << 32)) + 0.5;
      sample.at(i, d) = position * 0x1p-32;
    }
  }
  return sample;
}

}  // namespace gallop::tune
