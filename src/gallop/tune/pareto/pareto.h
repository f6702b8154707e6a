#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gallop/tune/trial.h"

// What several objectives come to. All losses are to be small; NaN counts as infinity.
namespace gallop::tune {

class GreedySelection;

/// Losses of several, a row for each with one number for each objective.
using LossRows = std::vector<std::vector<double>>;

/// Whether losses `a` are nowhere above `b` and somewhere below.
bool dominates(const std::vector<double>& a, const std::vector<double>& b);

/// How much a trial is above its limits: the sum of its violations above 0.
double total_violation(const Trial& trial);

/// Indices, rising, of the rows that no other one dominates; the first of several equal ones.
std::vector<size_t> nondominated(const LossRows& losses);

/// How often the rows that none dominates must be taken away until none dominates a row: 0 for
/// those that none dominates. Takes n log n steps with two objectives (Jensen, 2003), and at most
/// n² with more (Zhang et al., "An efficient approach to nondominated sorting", 2015).
std::vector<int32_t> domination_ranks(const LossRows& losses);

/// The same by constrained domination: rows with violations of at most 0 come first, those with
/// more after them by their violation alone (Deb et al., 2002).
std::vector<int32_t> domination_ranks(const LossRows& losses,
                                      const std::vector<double>& violations);

/// How far the neighbors of each row are apart, for each objective as a share of its range, summed;
/// infinite at the ends (Deb et al., 2002). For rows of one rank.
std::vector<double> crowding_distances(const LossRows& losses);

/// A point that is a tenth worse than the worst in each objective, and never 0.
std::vector<double> reference_point(const LossRows& losses);

/// The volume of what the rows dominate up to `reference`; rows that are not below it in all
/// objectives add nothing. Infinite where a row or the reference is. Takes n log n steps for two
/// and three objectives (by a sweep), and n times as many for each further one (While et al., "A
/// fast way of calculating exact hypervolumes", 2012).
double hypervolume(const LossRows& losses, const std::vector<double>& reference);

/// By how much the hypervolume of others would grow with a row. None is NaN.
double added_volume(const std::vector<double>& row, std::span<const std::vector<double>> others,
                    const std::vector<double>& reference);

/// By how much the hypervolume would shrink without each row.
std::vector<double> hypervolume_contributions(const LossRows& losses,
                                              const std::vector<double>& reference);

/// Indices of `count` rows, or of all if there are fewer, each of which adds the most hypervolume
/// to those before it (Guerreiro, Fonseca and Paquete, "Greedy hypervolume subset selection in low
/// dimensions", 2016). For rows of one rank; equal ones are taken last.
std::vector<size_t> select_by_hypervolume(const LossRows& losses, size_t count,
                                          const std::vector<double>& reference);

/// The same, sooner for rows of which few have come or gone since the last call with `last`.
std::vector<size_t> select_by_hypervolume(const LossRows& losses, size_t count,
                                          const std::vector<double>& reference,
                                          GreedySelection& last);

/// Indices of the rows of each rank, rising.
std::vector<std::vector<size_t>> fronts_of(const std::vector<int32_t>& ranks);

/// Indices of the `count` best rows, or of all: by their ranks, and of the last rank that has room
/// those that select_by_hypervolume() takes, up to its own reference_point().
std::vector<size_t> best_rows(const LossRows& losses, size_t count);

}  // namespace gallop::tune
