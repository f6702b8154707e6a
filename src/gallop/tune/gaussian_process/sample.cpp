#include "gallop/tune/gaussian_process/sample.h"

#include <algorithm>

#include "gallop/tune/samplers/sobol.h"

namespace gallop::tune {

Matrix even_sample(size_t count, size_t dimensions, Random& random) {
  const auto word = [&random] { return static_cast<uint32_t>(random.below(size_t{1} << 32)); };
  const size_t even = std::min(dimensions, Sobol::kMostDimensions);
  const Sobol sobol(even);
  std::vector<uint32_t> shifts(even);
  std::generate(shifts.begin(), shifts.end(), word);
  Matrix sample(count, dimensions);
  for (size_t i = 0; i < count; ++i) {
    const std::vector<uint32_t> point = sobol.at(i);
    for (size_t d = 0; d < dimensions; ++d) {
      const uint32_t position = d < even ? point[d] ^ shifts[d] : word();
      sample.at(i, d) = (position + 0.5) * 0x1p-32;
    }
  }
  return sample;
}

}  // namespace gallop::tune
