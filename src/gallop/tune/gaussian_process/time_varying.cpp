#include "gallop/tune/gaussian_process/time_varying.h"

#include <algorithm>
#include <cmath>

#include "gallop/tune/gaussian_process/fit.h"
#include "gallop/tune/gaussian_process/model.h"
#include "gallop/tune/gaussian_process/search.h"

namespace gallop::tune {

namespace {

constexpr double kLeastVariance = 1e-12;

class LowerBound final : public Acquisition {
 public:
  LowerBound(const Posterior& posterior, double time, double width)
      : posterior_(posterior), time_(time), width_(width) {}

  std::vector<double> lengths() const override {
    std::vector<double> lengths;
    for (const double inverse : posterior_.kernel().inverse_squared_lengths) {
      lengths.push_back(1 / std::sqrt(inverse));
    }
    return lengths;
  }

  std::vector<double> evaluate(const Matrix& points, Matrix* gradients) const override {
    const size_t count = points.rows();
    Matrix timed = points;
    timed.resize(count, points.columns() + 1);
    for (size_t i = 0; i < count; ++i) timed.at(i, points.columns()) = time_;
    Predictions predictions;
    posterior_.predict(timed, gradients != nullptr, predictions);
    std::vector<double> values;
    PredictionSlopes slopes{
        std::vector<double>(count, -1.0), {}, Matrix(count, posterior_.pending())};
    for (size_t i = 0; i < count; ++i) {
      const double deviation = std::sqrt(predictions.variances[i] + kLeastVariance);
      values.push_back(width_ * deviation - predictions.means[i]);
      slopes.variances.push_back(width_ / (2 * deviation));
    }
    if (gradients != nullptr) {
      gradients->reset(count, points.columns());
      posterior_.add_gradients(predictions, slopes, *gradients);
    }
    return values;
  }

 private:
  const Posterior& posterior_;
  double time_, width_;
};

std::vector<double> timed(std::vector<double> coordinates, double time) {
  coordinates.push_back(time);
  return coordinates;
}

}  // namespace

double bound_width(size_t measurements) {
  return std::sqrt(0.2 + std::max(0.0, std::log(0.4 * static_cast<double>(measurements))));
}

Point lowest_bound_at(const Coordinates& coordinates, const std::vector<TimedMeasurement>& measured,
                      const std::vector<Point>& pending, double time, const Random& random) {
  Inputs inputs(coordinates.categorical(), true);
  std::vector<double> values;
  for (const TimedMeasurement& one : measured) {
    inputs.append(timed(coordinates.encoded(one.point), one.time));
    values.push_back(one.value);
  }
  values = standardized(std::move(values)).values;
  KernelFit fit(inputs, values, KernelFit::default_kernel(inputs.dimensions()), false);
  while (!fit.is_done()) fit.step();
  Posterior posterior(fit.kernel(), inputs);
  posterior.set_values(std::move(values));
  std::vector<std::vector<double>> others;
  for (const Point& point : pending) others.push_back(timed(coordinates.encoded(point), time));
  posterior.set_pending(others);
  const LowerBound bound(posterior, time, bound_width(measured.size()));
  return search(bound, coordinates, {}, random, {}).front();
}

}  // namespace gallop::tune
