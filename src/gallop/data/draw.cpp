#include "gallop/data/draw.h"

#include <cmath>
#include <numbers>

namespace gallop::data {

void draw_normal(Philox& random, double mean, double sigma, std::span<float> out) {
  for (size_t i = 0; i < out.size(); i += 2) {
    const double radius = sigma * std::sqrt(-2 * std::log(1 - random.uniform()));
    const double angle = 2 * std::numbers::pi * random.uniform();
    out[i] = static_cast<float>(mean + radius * std::cos(angle));
    if (i + 1 < out.size()) out[i + 1] = static_cast<float>(mean + radius * std::sin(angle));
  }
}

double draw_gamma(Philox& random, double shape) {
  if (shape < 1) {
    const double power = std::pow(1.0 - random.uniform(), 1 / shape);
    return draw_gamma(random, shape + 1) * power;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    float x = 0;
    draw_normal(random, 0, 1, {&x, 1});
    const double v = std::pow(1 + c * x, 3), u = 1.0 - random.uniform();
    if (v > 0 && std::log(u) < 0.5 * double{x} * double{x} + d - d * v + d * std::log(v)) {
      return d * v;
    }
  }
}

std::vector<double> draw_dirichlet(Philox& random, double alpha, size_t count) {
  std::vector<double> weights(count);
  double sum = 0;
  for (double& weight : weights) sum += weight = draw_gamma(random, alpha);
  // For a tiny alpha, all may round to 0; then one of them has all the weight.
  if (sum == 0) {
    weights[random.below(count)] = 1;
    return weights;
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace gallop::data
