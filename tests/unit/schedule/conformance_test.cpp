// Properties of every schedule in the registry: a new one is tested automatically.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "unit/schedule/build.h"

namespace gallop::schedule {
namespace {

// Sets every option to some value that its field allows.
class RandomOptions final : public config::Visitor {
 public:
  explicit RandomOptions(std::mt19937_64& random, int depth = 0) : random_(random), depth_(depth) {}

  void field(const config::Field&, bool& value) override { value = below(2) == 1; }
  void field(const config::Field& field, int64_t& value) override {
    const auto low = static_cast<int64_t>(field.min.value_or(0));
    value = low + below(field.max ? static_cast<int64_t>(*field.max) - low + 1 : 5);
  }
  void field(const config::Field& field, double& value) override { value = number(field); }
  void field(const config::Field& field, std::string& value) override {
    value = field.choices.empty() ? span() : field.choices[below(field.choices.size())];
  }
  void field(const config::Field&, std::vector<int64_t>&) override { FAIL(); }
  void field(const config::Field&, std::vector<double>&) override { FAIL(); }
  void field(const config::Field&, std::vector<std::string>& value) override {
    value.resize(1 + below(3));
    for (auto& item : value) item = span();
  }
  void field(const config::Field&, std::optional<int64_t>&) override { FAIL(); }
  void field(const config::Field& field, std::optional<double>& value) override {
    value = below(2) == 1 ? std::optional(number(field)) : std::nullopt;
  }
  void field(const config::Field&, config::Component&) override { FAIL(); }
  void field(const config::Field&, config::ComponentList& value) override {
    const auto names = value.catalog().names();
    for (int64_t count = depth_ < 2 ? 1 + below(3) : 0; count > 0; --count) {
      value.items.emplace_back(value.catalog(), names[below(names.size())]);
      RandomOptions options(random_, depth_ + 1);
      value.items.back().visit_fields(options);
    }
  }

 protected:
  void nested_list(const config::Field&, const ListAccess&) override { FAIL(); }
  void nested(const config::Field&, const std::function<void(config::Visitor&)>& fields) override {
    fields(*this);
  }

 private:
  template <typename N>
  N below(N count) {
    return static_cast<N>(random_() % static_cast<uint64_t>(count));
  }
  // Including the bounds, if they are allowed.
  double number(const config::Field& field) {
    const double low = field.min.value_or(0), high = field.max.value_or(low + 3);
    const double share = below(5) / 4.;
    if (share == 0 && !field.above_min) return low;
    if (share == 1 && !field.below_max) return high;
    return low + (high - low) * std::uniform_real_distribution(0.01, 0.99)(random_);
  }
  std::string span() {
    static const std::vector<std::string> kSpans = {
        "0", "0.01", "0.1", "0.3", "0.5", "0.7", "1", "1 step", "13 steps", "1 epoch", "3 epochs"};
    return kSpans[below(kSpans.size())];
  }

  std::mt19937_64& random_;
  int depth_;
};

// For each schedule, many with options drawn at random; those that contradict each other are
// refused.
class Schedules : public testing::TestWithParam<std::string> {
 protected:
  template <typename Check>
  void check_many(Check check) {
    int built = 0;
    for (uint64_t seed = 0; seed < 20'000 && built < 100; ++seed) {
      std::mt19937_64 random(seed);
      config::Component component(kSchedules, GetParam());
      RandomOptions options(random);
      component.visit_fields(options);
      const auto build_one = [&] { return kSchedules.build(component, kRun); };
      try {
        build_one();
      } catch (const UsageError&) {
        continue;
      }
      ++built;
      SCOPED_TRACE(config::to_yaml(
          config::write_fields([&](config::Visitor& v) { component.visit_fields(v); }, {}), false));
      check(build_one);
      if (HasFailure()) return;
    }
    EXPECT_EQ(built, 100);
  }
};

// Evaluations that improve at first, and then no more.
Metrics metrics_at(int64_t step) {
  const double better = static_cast<double>(std::min<int64_t>(step, 15));
  return {.loss = 2 - 0.1 * better + 0.05 * std::sin(step), .accuracy = 0.04 * better};
}

TEST_P(Schedules, FactorsLieBetween0And1) {
  check_many([](const auto& build_one) {
    const auto schedule = build_one();
    for (int64_t i = 0; i <= 480; ++i) {
      const double progress = static_cast<double>(i) / 480;
      const double factor = schedule->factor(progress);
      ASSERT_TRUE(factor >= 0 && factor <= 1) << progress << ": " << factor;
      const double momentum = schedule->momentum(progress).value_or(0);
      ASSERT_TRUE(momentum >= 0 && momentum < 1) << progress << ": " << momentum;
      if (i % 12 == 0) schedule->evaluated(progress, metrics_at(i / 12));
    }
  });
}

TEST_P(Schedules, AResumedRunGetsTheSameValues) {
  check_many([](const auto& build_one) {
    const auto whole = build_one();
    auto resumed = build_one();
    for (int64_t step = 0; step < 40; ++step) {
      const double progress = static_cast<double>(step) / 40;
      if (step % 7 == 3) {
        auto again = build_one();
        again->restore(resumed->state());
        resumed = std::move(again);
      }
      ASSERT_EQ(resumed->factor(progress), whole->factor(progress)) << progress;
      ASSERT_EQ(resumed->momentum(progress), whole->momentum(progress)) << progress;
      whole->evaluated(progress, metrics_at(step));
      resumed->evaluated(progress, metrics_at(step));
      ASSERT_EQ(resumed->state(), whole->state());
    }
  });
}

// Except for stateful schedules, factors do not depend on the order of evaluation.
TEST_P(Schedules, DependOnlyOnProgress) {
  check_many([](const auto& build_one) {
    const auto forward = build_one(), backward = build_one();
    std::vector<double> factors;
    for (int i = 0; i <= 100; ++i) factors.push_back(forward->factor(i / 100.));
    for (int i = 100; i >= 0; --i) ASSERT_EQ(backward->factor(i / 100.), factors[i]);
  });
}

// A smaller last batch, or another unit of samples, must not change the schedule.
TEST_P(Schedules, TheUnitOfSamplesDoesNotMatter) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 100; ++i) {
    config::Component component(kSchedules, GetParam());
    RandomOptions options(random);
    component.visit_fields(options);
    RunLength other = kRun;
    for (double* value : {&other.samples, &other.samples_per_epoch, &other.batch}) *value *= 1234.5;
    std::unique_ptr<Schedule> one, two;
    try {
      one = kSchedules.build(component, kRun);
      two = kSchedules.build(component, other);
    } catch (const UsageError&) {
      continue;
    }
    for (int step = 0; step < 40; ++step) {
      const double progress = step / 40.;
      EXPECT_NEAR(one->factor(progress), two->factor(progress), 1e-11) << progress;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, Schedules, testing::ValuesIn(kSchedules.names()),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace gallop::schedule
