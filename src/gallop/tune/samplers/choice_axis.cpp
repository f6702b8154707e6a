#include "gallop/tune/samplers/choice_axis.h"

#include <cmath>

#include "gallop/tune/samplers/random.h"

namespace gallop::tune {

ChoiceAxis::ChoiceAxis(const Choices& choices)
    : choices_(choices),
      prior_(choices.weights),
      chosen_{static_cast<int32_t>(choices.values.size())} {
  if (prior_.empty()) prior_.assign(choices.values.size(), 1.0);
  double sum = 0;
  for (const double weight : prior_) sum += weight;
  for (double& weight : prior_) weight /= sum;
}

void ChoiceAxis::insert(size_t position, int64_t /*trial*/, double value) {
  chosen_.insert(chosen_.begin() + static_cast<ptrdiff_t>(position), static_cast<int32_t>(value));
}

void ChoiceAxis::erase(size_t position, int64_t /*trial*/) {
  chosen_.erase(chosen_.begin() + static_cast<ptrdiff_t>(position));
}

void ChoiceAxis::refresh(const std::vector<int64_t>& trials, double /*narrowing*/) {
  const double spread = static_cast<double>(prior_.size()) / static_cast<double>(trials.size() + 1);
  prior_share_ = spread / (spread + 1);
}

std::vector<double> ChoiceAxis::kernel(size_t position) const {
  const auto chosen = static_cast<size_t>(chosen_[position]);
  if (chosen == prior_.size()) return prior_;
  std::vector<double> shares;
  for (const double prior : prior_) shares.push_back(prior_share_ * prior);
  shares[chosen] += 1 - prior_share_;
  return shares;
}

double ChoiceAxis::draw(size_t kernel, Random& random) const {
  const auto chosen = static_cast<size_t>(chosen_[kernel]);
  const bool is_prior = chosen == prior_.size();
  if (!is_prior && random.uniform() >= prior_share_) return static_cast<double>(chosen);
  return choice_at_share(choices_, random.uniform());
}

void ChoiceAxis::describe(KernelColumns& columns, std::vector<double>& /*constants*/) const {
  columns.rows.push_back(chosen_.data());
}

void ChoiceAxis::describe(KernelQuery& query, double value) const {
  const auto choice = static_cast<size_t>(value);
  const double share = prior_share_ * prior_[choice];
  auto& table = query.tables.emplace_back(prior_.size(), std::log(share));
  table[choice] = std::log(share + 1 - prior_share_);
  table.push_back(std::log(prior_[choice]));
}

void ChoiceAxis::weigh(std::vector<double>& weights, double value) const {
  const auto choice = static_cast<size_t>(value);
  std::vector<double> factors;
  for (const double prior : prior_) {
    factors.push_back(prior_share_ * prior_[choice] / (prior_share_ * prior + 1 - prior_share_));
  }
  factors[choice] = 1;
  factors.push_back(1);
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] *= factors[static_cast<size_t>(chosen_[i])];
}

}  // namespace gallop::tune
