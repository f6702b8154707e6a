#include "gallop/schedule/combined.h"

#include <fmt/format.h>

#include "gallop/schedule/curves.h"
#include "gallop/schedule/scheduled_value.h"

namespace gallop::schedule {

namespace {

using Members = std::vector<std::unique_ptr<Schedule>>;

// Schedules whose states are concatenated.
class Combined : public Schedule {
 public:
  explicit Combined(Members members) : members_(std::move(members)) {}

  std::vector<double> state() const override {
    std::vector<double> all;
    for (const auto& member : members_) {
      const auto one = member->state();
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  void restore(const std::vector<double>& state) override {
    auto begin = state.begin();
    for (const auto& member : members_) {
      const auto end = begin + static_cast<std::ptrdiff_t>(member->state().size());
      member->restore({begin, end});
      begin = end;
    }
  }
  std::vector<std::string> followed_metrics() const override {
    std::vector<std::string> all;
    for (const auto& member : members_) {
      for (const std::string& one : member->followed_metrics()) all.push_back(one);
    }
    return all;
  }

 protected:
  Members members_;
};

class Chained final : public Combined {
 public:
  using Combined::Combined;

  double factor(double progress) const override {
    double product = 1;
    for (const auto& member : members_) product *= member->factor(progress);
    return product;
  }
  std::optional<double> momentum(double progress) const override {
    for (const auto& member : members_) {
      if (const auto found = member->momentum(progress)) return found;
    }
    return {};
  }
  // True if the cycle of any member ends.
  std::optional<bool> cycle_ends(double from, double to) const override {
    std::optional<bool> ends;
    for (const auto& member : members_) {
      if (const auto found = member->cycle_ends(from, to)) ends = ends.value_or(false) || *found;
    }
    return ends;
  }
  void evaluated(double progress, const Metrics& metrics) override {
    for (const auto& member : members_) member->evaluated(progress, metrics);
  }
};

class Sequence final : public Combined {
 public:
  // `bounds` are the starts of the members and the end of the run.
  Sequence(Members members, std::vector<double> bounds)
      : Combined(std::move(members)), bounds_(std::move(bounds)) {}

  double factor(double progress) const override {
    const Place place = place_of(progress);
    return members_[place.member]->factor(place.progress);
  }
  std::optional<double> momentum(double progress) const override {
    const Place place = place_of(progress);
    return members_[place.member]->momentum(place.progress);
  }
  // A member's last cycle ends with it.
  std::optional<bool> cycle_ends(double from, double to) const override {
    bool has_cycles = false;
    for (const auto& member : members_) has_cycles |= member->cycle_ends(0, 0).has_value();
    if (!has_cycles) return {};
    const Place begin = place_of(from), end = place_of(to);
    const auto ends = members_[begin.member]->cycle_ends(
        begin.progress, begin.member == end.member ? end.progress : 1);
    return ends && (*ends || begin.member != end.member);
  }
  void evaluated(double progress, const Metrics& metrics) override {
    const Place place = place_of(progress);
    members_[place.member]->evaluated(place.progress, metrics);
  }

 private:
  struct Place {
    size_t member;
    double progress;  // Within the member.
  };

  Place place_of(double progress) const {
    size_t member = 0;
    while (member + 1 < members_.size() && has_reached(progress, bounds_[member + 1])) ++member;
    return {member, share_between(bounds_[member], bounds_[member + 1], progress)};
  }

  std::vector<double> bounds_;
};

std::unique_ptr<Schedule> build(const config::Component& member, const RunLength& length) {
  return dynamic_cast<const ScheduleRegistry&>(member.catalog()).build(member, length);
}

void check_members(const char* schedule, const config::ComponentList& members) {
  if (!members.items.empty()) return;
  throw UsageError(fmt::format(
      "schedule {}: no members; set for example members: [{{warmup: {{}}}}, {{cosine: {{}}}}]",
      schedule));
}

const config::Field kMembers{.name = "members", .help = "the combined schedules"};

}  // namespace

void visit(config::Visitor& visitor, ChainedConfig& config) {
  visitor.field(kMembers, config.members);
}

void visit(config::Visitor& visitor, SequenceConfig& config) {
  visitor.field(kMembers, config.members);
  visitor.field(span_field("milestones", "where each member but the first begins, ascending"),
                config.milestones);
}

std::unique_ptr<Schedule> make_chained(const ChainedConfig& config, const RunLength& length) {
  check_members("chained", config.members);
  Members members;
  int with_momentum = 0;
  for (const auto& item : config.members.items) {
    members.push_back(build(item, length));
    with_momentum += has_momentum(*members.back()) ? 1 : 0;
  }
  if (with_momentum > 1) {
    throw UsageError(
        "schedule chained: more than one member sets a momentum; leave base_momentum and "
        "max_momentum to one");
  }
  return std::make_unique<Chained>(std::move(members));
}

std::unique_ptr<Schedule> make_sequence(const SequenceConfig& config, const RunLength& length) {
  check_members("sequence", config.members);
  const auto& items = config.members.items;
  if (config.milestones.size() + 1 != items.size()) {
    throw UsageError(fmt::format("schedule sequence: {} members need {} milestones, not {}",
                                 items.size(), items.size() - 1, config.milestones.size()));
  }
  std::vector<double> bounds = {0};
  if (items.size() > 1) {
    const auto milestones = rising_shares("sequence", config.milestones, length);
    if (milestones.back() >= 1) {
      throw UsageError(fmt::format("schedule sequence: milestone '{}' is not within the run",
                                   config.milestones.back()));
    }
    bounds.insert(bounds.end(), milestones.begin(), milestones.end());
  }
  bounds.push_back(1);
  Members members;
  for (size_t i = 0; i < items.size(); ++i) {
    members.push_back(build(items[i], length.part(bounds[i + 1] - bounds[i])));
  }
  return std::make_unique<Sequence>(std::move(members), std::move(bounds));
}

}  // namespace gallop::schedule
