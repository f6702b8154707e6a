#include "gallop/tune/samplers/quasi_random.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/tune/samplers/random.h"
#include "gallop/tune/samplers/sobol.h"

namespace gallop::tune {

namespace {

constexpr int64_t kInVain = 10'000;

class QuasiRandomSampler final : public Sampler {
 public:
  QuasiRandomSampler(const QuasiRandomConfig& config, const StudySettings& settings)
      : scramble_(config.scramble), sequence_(dimensions_of(settings.space)) {}

  std::optional<Proposal> ask(const Study& study, int64_t number) override {
    if (study.space().constraints().empty()) {
      return Proposal{.point = point_at(study, static_cast<uint64_t>(number))};
    }
    if (number < next_number_) next_number_ = 0, next_index_ = 0;
    for (;;) {
      Point point = next_allowed(study);
      if (next_number_++ == number) return Proposal{.point = std::move(point)};
    }
  }

 private:
  static size_t dimensions_of(const Space& space) {
    if (space.size() <= Sobol::kMostDimensions) return space.size();
    throw UsageError(fmt::format("sampler quasi-random: supports at most {} parameters, got {}",
                                 Sobol::kMostDimensions, space.size()));
  }

  Point point_at(const Study& study, uint64_t index) const {
    Point point;
    const std::vector<uint32_t> coordinates = sequence_.at(index);
    for (size_t i = 0; i < coordinates.size(); ++i) {
      const uint32_t coordinate =
          scramble_ ? scrambled(coordinates[i], study.seed(), i) : coordinates[i];
      point.push_back(value_at_share(study.space()[i], (coordinate + 0.5) * 0x1p-32));
    }
    study.space().drop_inactive(point);
    return point;
  }

  Point next_allowed(const Study& study) {
    for (int64_t i = 0; i < kInVain; ++i) {
      Point point = point_at(study, next_index_++);
      if (study.space().allows(point)) return point;
    }
    throw UsageError(fmt::format("the constraints reject {} points in a row", kInVain));
  }

  const bool scramble_;
  const Sobol sequence_;
  // The next trial and its position in the sequence; used with constraints only.
  int64_t next_number_ = 0;
  uint64_t next_index_ = 0;
};

}  // namespace

void visit(config::Visitor& visitor, QuasiRandomConfig& config) {
  visitor.field({.name = "scramble", .help = "scramble the sequence by the study's seed"},
                config.scramble);
}

std::unique_ptr<Sampler> make_quasi_random(const QuasiRandomConfig& config,
                                           const StudySettings& settings) {
  return std::make_unique<QuasiRandomSampler>(config, settings);
}

}  // namespace gallop::tune
