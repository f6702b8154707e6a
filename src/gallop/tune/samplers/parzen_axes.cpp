#include "gallop/tune/samplers/parzen_axes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <tuple>

#include "gallop/tune/normal.h"
#include "gallop/tune/samplers/choice_axis.h"
#include "gallop/tune/samplers/normal_masses.h"

namespace gallop::tune {

namespace {

constexpr double kMostKernels = 100;  // Minimum bandwidth stops shrinking beyond.
constexpr size_t kFewChanges = 16;

/// A hash of the trial's number (Fibonacci hashing).
uint64_t scrambled(int64_t trial) {
  return static_cast<uint64_t>(trial + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

/// The log-probability of the standard normal distribution between two points.
double log_mass(double low, double high) {
  if (low > 0) return log_mass(-high, -low);  // The lower tail is more precise.
  return std::log(normal_cdf(high) - normal_cdf(low));
}

/// The scale of KernelColumns::Bell and NormalColumns for a standard deviation.
double scale_of(double deviation) { return 1 / (std::numbers::sqrt2 * deviation); }

/// Numeric kernels: their centers and bandwidths on the parameter's scale.
class NumberAxis : public ParzenAxis {
 public:
  explicit NumberAxis(const Interval& interval)
      : interval_(interval), range_(coordinates(interval)) {
    centers_.push_back((range_.low + range_.high) / 2);
    deviations_.push_back(range_.high - range_.low);
  }

  void insert(size_t position, int64_t trial, double value) override {
    const double center = coordinate(interval_, value);
    insert_at(centers_, position, center);
    insert_at(deviations_, position, 0.0);
    added_.push_back({center, trial});
  }

  void erase(size_t position, int64_t trial) override {
    const Place place{centers_[position], trial};
    erase_at(centers_, position);
    erase_at(deviations_, position);
    if (std::erase(added_, place) == 0) removed_.push_back(place);
  }

  void refresh(const std::vector<int64_t>& trials, double narrowing) override {
    update_order();
    const double least = least_deviation() / narrowing;
    if (least != least_deviation_) {
      least_deviation_ = least;
      for (size_t i = 0; i < order_.size(); ++i) update(i, trials);
    } else {
      for (const auto* changes : {&added_, &removed_}) {
        for (const Place& place : *changes) update_around(place, trials);
      }
    }
    added_.clear();
    removed_.clear();
  }

  std::vector<double> kernel(size_t position) const override {
    return {centers_[position], deviations_[position]};
  }

  double draw(size_t kernel, Random& random) const override {
    const double center = centers_[kernel], deviation = deviations_[kernel];
    const double low = normal_cdf((range_.low - center) / deviation);
    const double high = normal_cdf((range_.high - center) / deviation);
    const double share = std::clamp(random.uniform(low, high), 1e-300, 1 - 0x1p-53);
    const double drawn = center + deviation * normal_quantile(share);
    return value_at(interval_, std::clamp(drawn, range_.low, range_.high));
  }

 protected:
  template <typename T>
  static void insert_at(std::vector<T>& list, size_t position, T item) {
    list.insert(list.begin() + static_cast<ptrdiff_t>(position), item);
  }
  template <typename T>
  static void erase_at(std::vector<T>& list, size_t position) {
    list.erase(list.begin() + static_cast<ptrdiff_t>(position));
  }

  /// Called after the bandwidth of a kernel has changed.
  virtual void set_deviation(size_t position, double deviation) = 0;

  const Interval interval_;
  const Range range_;
  std::vector<double> centers_, deviations_;  // By trial; the prior is last.

 private:
  struct Place {
    double center;
    int64_t trial;
    bool operator==(const Place&) const = default;
    bool operator<(const Place& other) const {
      const uint64_t turn = scrambled(trial), others_turn = scrambled(other.trial);
      return std::tie(center, turn) < std::tie(other.center, others_turn);
    }
  };

  void update_order() {
    if (!removed_.empty()) {
      std::sort(removed_.begin(), removed_.end());
      std::erase_if(order_, [&](const Place& place) {
        return std::binary_search(removed_.begin(), removed_.end(), place);
      });
    }
    if (added_.size() > kFewChanges) {
      const auto known = static_cast<ptrdiff_t>(order_.size());
      order_.insert(order_.end(), added_.begin(), added_.end());
      std::sort(order_.begin() + known, order_.end());
      std::inplace_merge(order_.begin(), order_.begin() + known, order_.end());
      return;
    }
    for (const Place& place : added_) {
      order_.insert(std::lower_bound(order_.begin(), order_.end(), place), place);
    }
  }

  double least_deviation() const {
    const auto kernels = static_cast<double>(order_.size() + 1);
    return (range_.high - range_.low) / std::min(kMostKernels, 1 + kernels);
  }

  void update_around(const Place& place, const std::vector<int64_t>& trials) {
    const auto found = std::lower_bound(order_.begin(), order_.end(), place);
    const auto index = static_cast<size_t>(found - order_.begin());
    for (size_t i = index > 0 ? index - 1 : 0; i < std::min(index + 2, order_.size()); ++i) {
      update(i, trials);
    }
  }

  // The larger distance to a neighbor; the interval's ends are neighbors of a single kernel.
  void update(size_t index, const std::vector<int64_t>& trials) {
    const double center = order_[index].center;
    const bool is_first = index == 0, is_last = index + 1 == order_.size();
    const double left = is_first ? range_.low : order_[index - 1].center;
    const double right = is_last ? range_.high : order_[index + 1].center;
    double deviation = std::max(center - left, right - center);
    if (order_.size() > 1 && (is_first || is_last)) {
      deviation = is_first ? right - center : center - left;
    }
    deviation = std::clamp(deviation, least_deviation_, range_.high - range_.low);
    const auto position = static_cast<size_t>(
        std::lower_bound(trials.begin(), trials.end(), order_[index].trial) - trials.begin());
    if (deviations_[position] != deviation) set_deviation(position, deviation);
  }

  double least_deviation_ = 0;
  std::vector<Place> order_;  // As of the last refresh; changes since then:
  std::vector<Place> added_, removed_;
};

/// Continuous numbers: kernels are normal distributions.
class BellAxis final : public NumberAxis {
 public:
  explicit BellAxis(const Interval& interval) : NumberAxis(interval) {
    scales_.push_back(0);
    constants_.push_back(0);
    set_deviation(0, deviations_[0]);
  }

  void insert(size_t position, int64_t trial, double value) override {
    NumberAxis::insert(position, trial, value);
    insert_at(scales_, position, 0.0);
    insert_at(constants_, position, 0.0);
  }

  void erase(size_t position, int64_t trial) override {
    NumberAxis::erase(position, trial);
    erase_at(scales_, position);
    erase_at(constants_, position);
  }

  void describe(KernelColumns& columns, std::vector<double>& constants) const override {
    columns.bells.push_back({centers_.data(), scales_.data()});
    for (size_t i = 0; i < constants.size(); ++i) constants[i] += constants_[i];
  }

  void describe(KernelQuery& query, double value) const override {
    query.at.push_back(coordinate(interval_, value));
  }

 private:
  void set_deviation(size_t position, double deviation) override {
    const double center = centers_[position];
    deviations_[position] = deviation;
    scales_[position] = scale_of(deviation);
    constants_[position] =
        -std::log(std::sqrt(2 * std::numbers::pi) * deviation) -
        log_mass((range_.low - center) / deviation, (range_.high - center) / deviation);
  }

  std::vector<double> scales_, constants_;
};

/// Discrete numbers: a kernel is a table of probabilities. Equal kernels share one row.
class CellAxis final : public NumberAxis {
 public:
  explicit CellAxis(const Interval& interval) : NumberAxis(interval) {
    row_of_.push_back(take(centers_[0], deviations_[0]));
  }

  void insert(size_t position, int64_t trial, double value) override {
    NumberAxis::insert(position, trial, value);
    insert_at(row_of_, position, kNone);
  }

  void erase(size_t position, int64_t trial) override {
    release(position);
    NumberAxis::erase(position, trial);
    erase_at(row_of_, position);
  }

  void describe(KernelColumns& columns, std::vector<double>& /*constants*/) const override {
    columns.rows.push_back(row_of_.data());
  }

  void describe(KernelQuery& query, double value) const override {
    const auto [low, high] = cell(interval_, value);
    auto& table = query.tables.emplace_back(row_kernels_.size());
    log_masses({table.size(), row_centers_.data(), row_scales_.data()}, low, high, table.data());
    for (size_t row = 0; row < table.size(); ++row) table[row] -= row_masses_[row];
  }

 private:
  static constexpr int32_t kNone = -1;

  void set_deviation(size_t position, double deviation) override {
    release(position);
    deviations_[position] = deviation;
    row_of_[position] = take(centers_[position], deviation);
  }

  int32_t take(double center, double deviation) {
    const auto [found, is_new] = known_.try_emplace({center, deviation}, kNone);
    if (is_new) found->second = add(center, deviation);
    ++row_kernels_[static_cast<size_t>(found->second)];
    return found->second;
  }

  int32_t add(double center, double deviation) {
    if (free_.empty()) {
      free_.push_back(static_cast<int32_t>(row_kernels_.size()));
      row_centers_.push_back(0);
      row_scales_.push_back(0);
      row_masses_.push_back(0);
      row_kernels_.push_back(0);
    }
    const int32_t index = free_.back();
    free_.pop_back();
    const auto row = static_cast<size_t>(index);
    row_centers_[row] = center;
    row_scales_[row] = scale_of(deviation);
    row_masses_[row] =
        log_mass((range_.low - center) / deviation, (range_.high - center) / deviation);
    return index;
  }

  void release(size_t position) {
    const int32_t index = row_of_[position];
    if (index == kNone || --row_kernels_[static_cast<size_t>(index)] > 0) return;
    known_.erase({centers_[position], deviations_[position]});
    free_.push_back(index);
  }

  std::vector<int32_t> row_of_;
  // By row; masses are log-probabilities between the interval's ends.
  std::vector<double> row_centers_, row_scales_, row_masses_;
  std::vector<int64_t> row_kernels_;  // Number of kernels with this row.
  std::vector<int32_t> free_;
  std::map<std::pair<double, double>, int32_t> known_;
};

}  // namespace

std::unique_ptr<ParzenAxis> make_axis(const Parameter& parameter) {
  const Interval* const interval = parameter.interval();
  if (interval == nullptr) return std::make_unique<ChoiceAxis>(*parameter.choices());
  if (interval->step == 0) return std::make_unique<BellAxis>(*interval);
  return std::make_unique<CellAxis>(*interval);
}

}  // namespace gallop::tune
