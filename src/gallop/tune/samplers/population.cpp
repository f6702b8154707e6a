#include "gallop/tune/samplers/population.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/tune/chosen.h"
#include "gallop/tune/samplers/generations.h"

namespace gallop::tune {

namespace {

constexpr int32_t kTries = 2;  // Attempts at a failing segment.

}  // namespace

struct PopulationSampler::Member {
  int32_t index = 0;
  const Trial* latest = nullptr;  // Null if no segment was started.
  const Trial* ended = nullptr;   // Its last complete segment.
  int32_t failures = 0;           // Consecutive failed segments since then.
  int64_t step = 0;               // Last step of its training so far.

  bool is_idle() const { return latest == nullptr || latest->is_finished(); }
};

struct PopulationSampler::RankedSegment {
  double loss;
  const Trial* trial;
  int32_t member;
};

void visit(config::Visitor& visitor, PopulationConfig& config) {
  visitor.field({.name = "population", .help = "population size", .min = 1}, config.population);
  visitor.field({.name = "interval",
                 .help = "evaluations, or steps that a command prints, between exploit-and-explore "
                         "decisions",
                 .min = 0},
                config.interval);
  visitor.field({.name = "last",
                 .help = "last evaluation of each member, or step that a command prints",
                 .min = 0},
                config.last);
  visitor.field({.name = "quantile",
                 .help = "fraction of members that are replaced, and of those that they copy",
                 .min = 0,
                 .max = 0.5},
                config.quantile);
  visitor.field(
      {.name = "synchronous", .help = "synchronous: members wait for each other at each interval"},
      config.synchronous);
}

PopulationSampler::PopulationSampler(const PopulationConfig& config, const StudySettings& settings,
                                     const char* who)
    : config_(config), who_(who), trials_(static_cast<size_t>(config.population)) {
  check_one_objective(settings, who);
  const auto refuse = [&](const std::string& why) {
    throw UsageError(fmt::format("{}: {}", who, why));
  };
  if (config.interval == 0) {
    refuse(
        "interval (evaluations, or steps of a command, between exploit-and-explore decisions) is "
        "required");
  }
  if (config.last == 0) refuse("last (the last evaluation, or step of a command) is required");
  if (!settings.limits.empty()) refuse("limits are not supported");
  if (has_pruner(settings)) refuse("pruners are not supported");
  const int64_t segments = (config.last + config.interval - 1) / config.interval;
  if (settings.trials / config.population < segments) {
    refuse(
        fmt::format("{} members with {} segments each need {} trials; the study "
                    "has {}",
                    config.population, segments, config.population * segments, settings.trials));
  }
}

void PopulationSampler::follow(const Study& study) {
  const auto& trials = study.trials();
  for (; followed_ < trials.size(); ++followed_) {
    const auto member = static_cast<size_t>(trials[followed_].member);
    if (member < trials_.size()) trials_[member].push_back(trials[followed_].number);
  }
}

std::vector<PopulationSampler::Member> PopulationSampler::members(const Study& study) const {
  std::vector<Member> members;
  for (const auto& numbers : trials_) {
    Member member{.index = static_cast<int32_t>(members.size())};
    for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
      const Trial& trial = study.trials()[static_cast<size_t>(*number)];
      if (member.latest == nullptr) member.latest = &trial;
      if (trial.state == TrialState::kComplete) {
        member.ended = &trial;
        break;
      }
      if (trial.is_finished()) ++member.failures;
    }
    if (member.ended != nullptr) member.step = member.ended->last_step;
    members.push_back(member);
  }
  return members;
}

// The idle member that has trained the fewest steps.
const PopulationSampler::Member* PopulationSampler::next(const std::vector<Member>& members) const {
  const auto by_step = [](const Member& a, const Member& b) { return a.step < b.step; };
  const int64_t least = std::min_element(members.begin(), members.end(), by_step)->step;
  const Member* next = nullptr;
  for (const Member& member : members) {
    if (!member.is_idle() || member.step >= config_.last) continue;
    if (config_.synchronous && member.step > least) continue;
    if (next == nullptr || member.step < next->step) next = &member;
  }
  return next;
}

// The segments with which the asking member is compared, best first.
std::vector<PopulationSampler::RankedSegment> PopulationSampler::ranking(
    const Study& study, const std::vector<Member>& members, const Member& asking) const {
  std::vector<RankedSegment> ranking;
  for (const Member& member : members) {
    const Trial* trial = member.ended;
    if (config_.synchronous) {
      // Other members may have ended a later segment already.
      const auto& numbers = trials_[static_cast<size_t>(member.index)];
      for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
        trial = &study.trials()[static_cast<size_t>(*number)];
        if (trial->state == TrialState::kComplete && trial->last_step == asking.step) break;
        trial = nullptr;
      }
    }
    if (trial == nullptr || trial->last_step >= config_.last) continue;
    ranking.push_back({loss_of(*trial), trial, member.index});
  }
  std::sort(ranking.begin(), ranking.end(), [](const RankedSegment& a, const RankedSegment& b) {
    return a.loss != b.loss ? a.loss < b.loss : a.member < b.member;
  });
  return ranking;
}

Proposal PopulationSampler::segment(Point point, const Trial* parent, const Member& member) const {
  const int64_t first = parent == nullptr ? 0 : parent->last_step;
  return {.point = std::move(point),
          .parent = parent == nullptr ? -1 : parent->number,
          .member = member.index,
          .last_step = std::min(first + config_.interval, config_.last)};
}

std::optional<Proposal> PopulationSampler::ask(const Study& study, int64_t number) {
  follow(study);
  const auto members = this->members(study);
  const Member* const member = next(members);
  if (member == nullptr) return std::nullopt;
  Random random(study.seed(), number);
  const bool gives_up = member->failures > 0 && member->failures % kTries == 0;
  const Trial* const failed = member->failures > 0 ? member->latest : nullptr;
  if (failed != nullptr && !gives_up) {
    return Proposal{.point = failed->point,
                    .parent = failed->parent,
                    .member = failed->member,
                    .last_step = failed->last_step};
  }
  const auto ranking = this->ranking(study, members, *member);
  const size_t count = ranking.size();
  const auto share = std::ceil(config_.quantile * static_cast<double>(count));
  const size_t quantile = std::min(static_cast<size_t>(share), count / 2);
  const auto is_asking = [&](const RankedSegment& one) { return one.member == member->index; };
  const bool is_bottom =
      std::any_of(ranking.end() - static_cast<int64_t>(quantile), ranking.end(), is_asking);
  if ((gives_up || is_bottom) && quantile > 0) {
    const Trial& donor = *ranking[random.below(quantile)].trial;
    return segment(explored(study, donor, number, random), &donor, *member);
  }
  if (member->ended == nullptr) {
    return segment(random_point(study.space(), random), nullptr, *member);
  }
  return segment(member->ended->point, member->ended, *member);
}

Proposal PopulationSampler::given(Point point, int64_t number) const {
  if (number >= config_.population) {
    throw UsageError(fmt::format("{}: only the first {} trials can have a given point", who_,
                                 config_.population));
  }
  return segment(std::move(point), nullptr, {.index = static_cast<int32_t>(number)});
}

bool PopulationSampler::is_exhausted(const Study& study) const {
  std::vector<bool> has_ended(trials_.size());
  for (const Trial& trial : study.trials()) {
    const auto member = static_cast<size_t>(trial.member);
    if (member >= trials_.size()) continue;
    if (trial.state == TrialState::kComplete && trial.last_step >= config_.last) {
      has_ended[member] = true;
    }
  }
  return std::find(has_ended.begin(), has_ended.end(), false) == has_ended.end();
}

}  // namespace gallop::tune
