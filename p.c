#include <stdio.h>
#include <stdlib.h>
#include "plan.h"
int main(int c,char**v){struct plan p={.transport=PLAN_RC,.seed=atoi(v[1]),.max_len=atoi(v[2]),.path_mtu=atoi(v[3])};
int r=atoi(v[4]);struct message m[16];
for(int s=0;s<2;s++){unsigned n=plan_round(&p,r,s,m);printf("side %d%s\n",s,plan_is_late(&p,r)?" late":"");for(unsigned i=0;i<n;i++)printf("  %u %s %u%s%s\n",i,op_names[m[i].op],m[i].len,m[i].is_signaled?" signaled":"",m[i].is_inline?" inline":"");}}
