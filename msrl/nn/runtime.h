// What a program that trains sets about its process, and what msrl::nn sets about its own sums.
#ifndef MSRL_NN_RUNTIME_H_
#define MSRL_NN_RUNTIME_H_

namespace msrl {

// OpenBLAS and OpenMP, if the program contains them, use one thread from now on: with small
// networks more threads are slower, and results would depend on their number. msrl::nn itself never
// starts a thread. Call it once at the start of main().
void UseOneThread();

namespace internal {

// While it lives, this thread treats denormal numbers as zero (FTZ and DAZ; nothing on processors
// other than x86). Every function of msrl::nn that computes on float buffers holds one, so results
// don't depend on which thread calls it, and the caller's own arithmetic is left alone. Without it
// the moments of an unused weight fade through the denormals, where some processors are a hundred
// times slower.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned saved_ = 0;
};

}  // namespace internal
}  // namespace msrl

#endif  // MSRL_NN_RUNTIME_H_
