#pragma once

namespace gallop::kernel {

/// Whether the compute threads are configured to share their cores with other programs.
///
/// OpenMP's threads wait by spinning, for up to 10 ms, which is fastest on exclusive cores. If
/// other programs are scheduled on the same cores, a spinning thread delays the thread that it
/// waits for, and a step takes many times its share of the machine. Two measures apply then:
///
/// - GNU's OpenMP spins a hundredth as long if a process has more OpenMP threads than cores; so
///   additional sleeping threads make it yield its cores.
/// - Each thread is bound to its own core, if there are enough. Otherwise the system
///   leaves two of them on one core and another program on the other, and barriers that always
///   spin, as those of oneDNN in gradients of convolutions do, cost a time slice each.
///
/// No result changes; a step that has its cores to itself takes longer, up to twice as long. Does
/// nothing if the threads cannot be started. Must be called by the one thread that starts all
/// parallel regions.
void share_cores(bool share);
bool shares_cores();

/// Call at each step of training, evaluation or prediction: checks a few times a second
/// whether a compute thread has waited for its core, rather than for other threads of this
/// program, and shares the cores as long as that is so. Of several threads that call it at the same
/// time, one does.
void share_cores_with_others();

/// Decides when to share, and when to check whether others are still there: after half a second, or
/// after twice the last interval if that was too soon.
class Sharing {
 public:
  /// Takes a measurement at `now` in seconds: the longest wait of a thread, as a fraction of the
  /// time between two measurements. Returns whether to share from now on.
  bool look(double now, double waited);

 private:
  bool shares_ = false;
  double disturbed_at_ = 0, left_at_ = 0;
  double patience_ = 0;  ///< Seconds.
};

}  // namespace gallop::kernel
