// Compiled without contraction: products and sums are fused only where std::fma says so.
#include "gallop/data/pixels/gaussian_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "gallop/data/pixels/linspace.h"

namespace gallop::data::pixels {

namespace {

// expf of SLEEF with an error of up to 1.0 ulp, which torch's softmax uses.
float exponential(float value) {
  constexpr float kLog2OfE = 1.442695040888963407359924681001892137426645954152985934135449406931F;
  constexpr float kLn2Upper = 0.693145751953125F, kLn2Lower = 1.428606765330187045e-06F;
  constexpr std::array kTerms{0.00139304355252534151077271F, 0.00833336077630519866943359F,
                              0.0416664853692054748535156F, 0.166666671633720397949219F, 0.5F};
  if (value < -104.0F) return 0;  // Also where the power would exceed an int.
  const float power = std::nearbyint(value * kLog2OfE);
  const float rest = std::fma(power, -kLn2Lower, std::fma(power, -kLn2Upper, value));
  float sum = 0.000198527617612853646278381F;
  for (const float term : kTerms) sum = std::fma(sum, rest, term);
  sum = 1.0F + std::fma(rest * rest, sum, rest);
  return std::ldexp(sum, static_cast<int>(power));
}

// The sum of a vector of 16 values by halves, or of fewer values one after the other.
float sum_of(const std::vector<float>& values) {
  constexpr size_t kLanes = 16;
  if (values.size() < kLanes) {
    float sum = values[0];
    for (size_t i = 1; i < values.size(); ++i) sum += values[i];
    return sum;
  }
  std::array<float, kLanes> lanes;
  std::copy_n(values.begin(), kLanes, lanes.begin());
  for (size_t i = kLanes; i < values.size(); ++i) lanes[i % kLanes] += values[i];
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// _get_gaussian_kernel1d: the softmax of -(x / sigma)^2 for x from -limit to limit.
std::vector<float> weights_of(int size, double sigma) {
  const double limit = (size - 1) / (2 * std::numbers::sqrt2);
  std::vector<float> weights;
  for (int i = 0; i < size; ++i) {
    const float x = linspace(-limit, limit, i, size) / static_cast<float>(sigma);
    weights.push_back(-(x * x));
  }
  const float most = *std::max_element(weights.begin(), weights.end());
  for (float& weight : weights) weight = exponential(weight - most);
  const float scale = 1 / sum_of(weights);
  for (float& weight : weights) weight *= scale;
  return weights;
}

}  // namespace

std::vector<float> gaussian_kernel(const GaussianBlur& blur) {
  const std::vector<float> across = weights_of(blur.kernel_width, blur.sigma_x);
  const std::vector<float> down = weights_of(blur.kernel_height, blur.sigma_y);
  std::vector<float> kernel;
  for (const float y : down) {
    for (const float x : across) kernel.push_back(y * x);
  }
  return kernel;
}

}  // namespace gallop::data::pixels
