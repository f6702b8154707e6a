#include "gallop/schedule/curves.h"

#include <fmt/format.h>

namespace gallop::schedule {

namespace {

class Curve final : public Schedule {
 public:
  explicit Curve(std::function<double(double)> factor) : factor_(std::move(factor)) {}
  double factor(double progress) const override { return factor_(progress); }

 private:
  std::function<double(double)> factor_;
};

}  // namespace

std::unique_ptr<Schedule> make_curve(std::function<double(double)> factor) {
  return std::make_unique<Curve>(std::move(factor));
}

std::vector<double> rising_shares(const char* schedule, const std::vector<std::string>& milestones,
                                  const RunLength& length) {
  if (milestones.empty()) {
    throw UsageError(fmt::format("schedule {}: milestones must not be empty", schedule));
  }
  std::vector<double> shares;
  for (size_t i = 0; i < milestones.size(); ++i) {
    shares.push_back(length.share_of(milestones[i]));
    if (shares[i] > (i > 0 ? shares[i - 1] : 0)) continue;
    throw UsageError(i > 0
                         ? fmt::format("schedule {}: milestones must ascend, but '{}' comes after "
                                       "'{}'",
                                       schedule, milestones[i], milestones[i - 1])
                         : fmt::format("schedule {}: the first milestone is '{}'; it must be "
                                       "above 0",
                                       schedule, milestones[i]));
  }
  return shares;
}

double period_share(const char* schedule, const char* option, const std::string& period,
                    const RunLength& length) {
  const double share = length.share_of(period);
  if (share > 0) return share;
  throw UsageError(
      fmt::format("schedule {}: {} is '{}'; it must be above 0", schedule, option, period));
}

}  // namespace gallop::schedule
