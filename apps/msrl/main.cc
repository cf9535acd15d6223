#include "msrl/cli/main.h"

#include "msrl/builtin/builtin.h"

int main(int argc, char** argv) { return msrl::Main(argc, argv, msrl::BuiltinRegistries()); }
